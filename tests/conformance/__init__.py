"""The conformance suite of the protocol against our server, with the tools, resources and prompts that it asks for."""
