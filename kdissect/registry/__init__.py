"""The sources of schemas: folders and files, log directories, registries. :mod:`kdissect.payload` itself
reads none of them."""
