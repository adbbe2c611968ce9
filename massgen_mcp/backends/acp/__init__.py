"""Agent CLIs that speak the Agent Client Protocol, as models: `agent` has the agent, `enclosure` its sandbox,
`team_server` the team's tools and what it may do, `relay` what runs beside it.
"""
