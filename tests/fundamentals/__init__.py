"""Read this first: what the product is for, in a handful of tests."""
