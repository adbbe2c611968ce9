"""The team as an agent of an editor, over the Agent Client Protocol: `serve` has the streams, `agent` the sessions,
`turn` what is told of one run, `prompt` what the editor sends, `choices` what a session can be set to.
"""
