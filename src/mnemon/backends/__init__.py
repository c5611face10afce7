"""The technologies that Mnemon runs on. Only `assembly` imports from here."""
