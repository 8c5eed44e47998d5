"""Settings that every test shares."""

import torch

# As in the workers of a sweep: one thread, so that results do not depend on the machine's cores.
torch.set_num_threads(1)
