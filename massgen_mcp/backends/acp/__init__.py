"""Agent CLIs that speak the Agent Client Protocol, as models: `backend` has the agent, `enclosure` its sandbox,
`team_server` the team's tools, `permits` what it may do, `relay` what runs beside it.
"""
