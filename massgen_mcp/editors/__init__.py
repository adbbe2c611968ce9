"""The team as an agent of an editor, over the Agent Client Protocol: `serve` has the streams, `agent` the sessions,
`turn` what the editor sends and is told of one run, `choices` what a session can be set to.
"""
