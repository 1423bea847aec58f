"""What the section `clicks` compares with: wide and deep in PyTorch, tables of sparse gradients.

Rows are those that clicks.c writes (OUT.bin), whole in memory; a batch is an index_select of
shuffled rows. The wide part is an EmbeddingBag of sums and a linear layer over the numbers, the
deep one an EmbeddingBag of single categories, concatenated with the numbers. Initial weights are
drawn as dtrain draws them: with PyTorch's own the output begins smaller, and the logloss after a
pass over 1 M rows is lower by 0.0007. One pass over the training rows; prints one JSON line. With
--world 2 it is one process of DistributedDataParallel over gloo, which takes its part of each
global batch.
"""
import argparse
import json
import time

import numpy
import torch
import torch.distributed as dist

NUMBERS, CATEGORIES, HASHES = 13, 26, 1 << 22


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument('train')
    parser.add_argument('eval')
    parser.add_argument('--width', type=int, default=16)
    parser.add_argument('--hidden', default='256-128')
    parser.add_argument('--batch', type=int, default=1024, help='global batch')
    parser.add_argument('--lr', type=float, default=0.02)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--steps', type=int, default=0, help='0: a pass')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--rank', type=int, default=0)
    parser.add_argument('--world', type=int, default=1)
    parser.add_argument('--store', help='file that the processes meet at')
    return parser.parse_args()


def read_rows(path):
    words = numpy.fromfile(path, numpy.float32).reshape(-1, 1 + NUMBERS + CATEGORIES)
    index = words[:, 1 + NUMBERS:].copy().view(numpy.int32).astype(numpy.int64)
    return torch.from_numpy(words[:, 1:1 + NUMBERS].copy()), torch.from_numpy(index), \
        torch.from_numpy(words[:, 0].copy())


class WideAndDeep(torch.nn.Module):
    def __init__(self, args):
        super().__init__()
        nn = torch.nn
        self.table = nn.EmbeddingBag(HASHES, args.width, mode='sum', sparse=True)
        nn.init.normal_(self.table.weight, std=args.width ** -0.5)
        self.wide = nn.EmbeddingBag(HASHES, 1, mode='sum', sparse=True)
        nn.init.zeros_(self.wide.weight)
        self.wide_numbers = nn.Linear(NUMBERS, 1, bias=False)
        nn.init.zeros_(self.wide_numbers.weight)
        widths = [NUMBERS + CATEGORIES * args.width] + [int(width)
                                                        for width in args.hidden.split('-')]
        layers = []
        for nin, nout in zip(widths, widths[1:]):
            layers += [self.linear(nin, nout, nn.init.kaiming_normal_, nonlinearity='relu'),
                       nn.ReLU()]
        self.deep = nn.Sequential(*layers, self.linear(widths[-1], 1, nn.init.xavier_uniform_))

    @staticmethod
    def linear(nin, nout, init, **options):
        layer = torch.nn.Linear(nin, nout)
        init(layer.weight, **options)
        torch.nn.init.zeros_(layer.bias)
        return layer

    def forward(self, numbers, index):
        vectors = self.table(index.view(-1, 1)).view(len(index), -1)
        deep = self.deep(torch.cat([numbers, vectors], 1))
        return (deep + self.wide(index) + self.wide_numbers(numbers)).squeeze(1)


def logloss(net, rows):
    total = 0.0
    with torch.no_grad():
        for numbers, index, label in zip(*(part.split(4096) for part in rows)):
            total += torch.nn.functional.binary_cross_entropy_with_logits(net(numbers, index),
                                                                          label,
                                                                          reduction='sum').item()
    return total / len(rows[2])


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    if args.world > 1:
        dist.init_process_group('gloo', init_method=f'file://{args.store}', rank=args.rank,
                                world_size=args.world)
    numbers, index, label = read_rows(args.train)
    net = bare = WideAndDeep(args)
    if args.world > 1:
        net = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adagrad(net.parameters(), lr=args.lr)
    loss_of = torch.nn.BCEWithLogitsLoss()
    order = torch.randperm(len(label))
    batches = order.split(args.batch)
    batches = batches[:args.steps] if args.steps else batches
    start = time.perf_counter()
    for rows in batches:
        rows = rows[args.rank::args.world]
        optimizer.zero_grad(set_to_none=True)
        loss_of(net(numbers[rows], index[rows]), label[rows]).backward()
        optimizer.step()
    secs = time.perf_counter() - start
    if args.rank == 0:
        print(json.dumps({'torch': torch.__version__,
                          'samples_per_sec': sum(len(rows) for rows in batches) / secs,
                          'logloss': logloss(bare, read_rows(args.eval))}))


main()
