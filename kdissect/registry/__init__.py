"""Where schemas come from: folders and files, log directories, registries. The only reading for
:mod:`kdissect.payload`, which does none."""
