"""What is a team worth? Tasks with known answers, who is right, and who is compared with whom at which price.

`tasks.py` reads them, `scoring.py` says what is right, `comparing.py` asks the teams and the one model beside them,
`report.py` tells what came of it, and `surroundings.py` what it was measured with.
"""
