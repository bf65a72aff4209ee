"""Problems in files: a model (.mps, .lp), predictors in their own files, and a TOML file that connects
them."""
