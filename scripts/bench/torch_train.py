"""What `make bench` compares with: PyTorch on Fashion-MNIST, without overhead that is not its own.

The data is one float tensor, a batch is an index_select of shuffled indices; no DataLoader, no
logging. Prints one JSON line. With --world 2 it is one process of DistributedDataParallel over
gloo, which takes its part of each global batch.
"""
import argparse
import gzip
import json
import time

import numpy
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

DATA = '/usr/share/datasets/fashion-mnist/'
CALIBRATION = 20  # steps; the first ones, before any clock runs


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument('--net', default='784-512-256-10',
                        help='widths of the layers; cnn: convolutional')
    parser.add_argument('--batch', type=int, default=128, help='global batch')
    parser.add_argument('--lr', type=float, default=0.01)
    parser.add_argument('--threads', type=int, default=1, help='of the interpreter')
    parser.add_argument('--secs', type=float, default=3.0, help='how long to measure')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--data', default=DATA, help='directory of the IDX files')
    parser.add_argument('--target', type=float, default=0.0,
                        help='train to this test accuracy instead')
    parser.add_argument('--eval-steps', type=int, default=100)
    parser.add_argument('--max-epochs', type=int, default=40, help='with --target')
    parser.add_argument('--bf16', action='store_true', help='autocast')
    parser.add_argument('--fp16-wire', action='store_true', help='gradients travel in 16 bits')
    parser.add_argument('--rank', type=int, default=0)
    parser.add_argument('--world', type=int, default=1)
    parser.add_argument('--store', help='file that the processes meet at')
    return parser.parse_args()


def read_idx(path, header):
    with gzip.open(path) as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=header)


def read_part(directory, part):
    x = read_idx(f'{directory}/{part}-images-idx3-ubyte.gz', 16).reshape(-1, 784)
    y = read_idx(f'{directory}/{part}-labels-idx1-ubyte.gz', 8)
    return torch.tensor(x, dtype=torch.float32) / 255, torch.tensor(y, dtype=torch.int64)


def create_cnn():
    nn = torch.nn
    return nn.Sequential(nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(),
                         nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))


def create_net(name):
    if name == 'cnn':
        return create_cnn()
    widths = [int(width) for width in name.split('-')]
    layers = []
    for nin, nout in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(nin, nout), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


class Trainer:
    def __init__(self, args):
        torch.manual_seed(args.seed)
        self.args = args
        self.net = create_net(args.net)
        if args.world > 1:
            self.net = torch.nn.parallel.DistributedDataParallel(self.net,
                gradient_as_bucket_view=True)
            if args.fp16_wire:
                self.net.register_comm_hook(None, default_hooks.fp16_compress_hook)
        self.loss = torch.nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=args.lr, momentum=0.9)
        self.x, self.y = read_part(args.data, 'train')
        self.order, self.at, self.samples = None, 0, 0

    def next_indices(self):
        """All processes draw the same order; each takes its part of the batch."""
        if self.order is None or self.at >= len(self.order):
            self.order, self.at = torch.randperm(len(self.x)), 0
        batch = self.order[self.at:self.at + self.args.batch]
        self.at += self.args.batch
        self.samples += len(batch)
        return batch[self.args.rank::self.args.world]

    def step(self):
        indices = self.next_indices()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast('cpu', torch.bfloat16, enabled=self.args.bf16):
            logits = self.net(self.x.index_select(0, indices))
            loss = self.loss(logits, self.y.index_select(0, indices))
        loss.backward()
        self.optimizer.step()

    def run(self, steps):
        """Seconds that the steps took."""
        start = time.perf_counter()
        for _ in range(steps):
            self.step()
        return time.perf_counter() - start


def measure_speed(trainer, args):
    trainer.run(CALIBRATION)
    steps = torch.tensor([args.secs / trainer.run(CALIBRATION) * CALIBRATION])
    if args.world > 1:
        dist.broadcast(steps, 0)
    trainer.samples = 0
    secs = trainer.run(max(int(steps), CALIBRATION))
    return {'samples_per_sec': trainer.samples / secs}


def accuracy_of(net, x, y):
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


def measure_time_to(target, trainer, args):
    x, y = read_part(args.data, 't10k')
    secs, accuracy = 0.0, 0.0
    while accuracy < target and trainer.samples < args.max_epochs * len(trainer.x):
        secs += trainer.run(args.eval_steps)
        accuracy = accuracy_of(trainer.net, x, y)
    reached = {'secs_to_target': secs,
               'samples_to_target': trainer.samples} if accuracy >= target else {}
    return {'samples_per_sec': trainer.samples / secs, 'accuracy': accuracy, **reached}


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    if args.world > 1:
        dist.init_process_group('gloo', init_method=f'file://{args.store}', rank=args.rank,
                                world_size=args.world)
    trainer = Trainer(args)
    if args.target:
        result = measure_time_to(args.target, trainer, args)
    else:
        result = measure_speed(trainer, args)
    if args.rank == 0:
        print(json.dumps({'torch': torch.__version__, **result}))


main()
