"""What a run has saved, for tests that follow it in PyTorch."""
import h5py
import torch


def tensors(run_dir, step):
    """A dictionary a layer, in order."""
    with h5py.File(f"{run_dir}/ckpt/step-{step:09d}.h5", "r") as file:
        group = file["/model/layers"]
        return [{k: torch.from_numpy(group[n][k][()].copy()) for k in group[n]}
                for n in sorted(group, key=int)]
