"""What turns texts into vectors. `loading` chooses; each technology has a module that is loaded only when used."""
