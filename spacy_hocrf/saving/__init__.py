"""Models as files: bytes and folders, checked before anything is made of them."""
