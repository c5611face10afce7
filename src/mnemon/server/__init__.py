"""Mnemon in a web application; needs the extra `mnemon[server]`. Nothing else imports this."""
