"""A server that several people share: nobody sees, hears or changes anything of another one's runs."""
