"""`massgen review`: a change is reviewed by a team, and others of the team try to refute what was found.

`change.py`: what is reviewed. `diff.py`: its files; `parts.py`: its parts, pure. `review.py`: who is asked for what.
`findings.py`: what was found, and what follows from it, pure. `report.py`: how it is told, pure.
"""
