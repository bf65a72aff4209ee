"""Tree ensembles of all libraries, read into one flat form and compared with the owner's live object."""
