"""The example tool that configs of MassGen name without a file."""


async def two_num_tool(x: int, y: int) -> str:
    """Add two numbers together.

    Args:
        x: First number
        y: Second number
    """
    return f"The sum of {x} and {y} is {x + y}"
