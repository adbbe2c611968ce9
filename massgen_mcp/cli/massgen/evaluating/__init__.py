"""`massgen eval`: what a team is worth beside one model."""
