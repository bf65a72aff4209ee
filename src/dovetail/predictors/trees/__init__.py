"""Tree ensembles of all libraries, read into one flat form; the owner's live object stays the judge."""
