"""How a release is made and tried: what `make release-check` and the workflows in `.github/` run."""
