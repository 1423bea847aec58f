"""What bits.sh compares with, and its comparison.

    bits.py table DIR
        makes a table of numbers and its held-out rows: train.csv, test.csv
    bits.py perceptron|xgboost DATA OUT
        trains scikit-learn's perceptron or XGBoost with THREADS threads
    bits.py torch DATA OUT WORLD RANK STORE
        a process of PyTorch's DistributedDataParallel over gloo
    bits.py compare FILE...
        the largest difference between predictions of the same rows

DATA is that directory, or Fashion-MNIST's. OUT gets the predictions of 1,000 held-out rows, a line
of probabilities a row; the checksum of the model is printed. A seed is set wherever there is one.
"""
import gzip
import json
import os
import sys
import zlib

import numpy

ROWS, COLUMNS, HELD_OUT = 12000, 20, 1000


def make_table(directory):
    draw = numpy.random.RandomState(7)
    x = draw.standard_normal((ROWS, COLUMNS)).astype(numpy.float32)
    score = x[:, 0] * x[:, 1] + numpy.sin(2 * x[:, 2]) + 0.5 * x[:, 3] + 0.3 * draw.standard_normal(
        ROWS)
    label = numpy.digitize(score, [-0.7, 0.7])
    for name, part in (("train", slice(HELD_OUT, None)), ("test", slice(0, HELD_OUT))):
        numpy.savetxt(f"{directory}/{name}.csv", numpy.column_stack([x[part], label[part]]), "%.6g",
                      ",")


def read_idx(path, header):
    with gzip.open(path) as file:
        return numpy.frombuffer(file.read(), numpy.uint8, offset=header)


def read(directory):
    """Features and labels to train on, features of the held-out rows."""
    if os.path.exists(f"{directory}/train.csv"):
        train, test = (numpy.loadtxt(f"{directory}/{name}.csv", numpy.float32, delimiter=",")
                       for name in ("train", "test"))
        return train[:, :-1], train[:, -1].astype(int), test[:, :-1]
    x = read_idx(f"{directory}/train-images-idx3-ubyte.gz", 16).reshape(-1, 784)
    y = read_idx(f"{directory}/train-labels-idx1-ubyte.gz", 8)
    test = read_idx(f"{directory}/t10k-images-idx3-ubyte.gz", 16).reshape(-1, 784)[:HELD_OUT]
    return x.astype(numpy.float32) / 255, y.astype(int), test.astype(numpy.float32) / 255


def write(out, probabilities, *weights):
    numpy.savetxt(out, probabilities, "%.9g")
    crc = 0
    for part in weights:
        crc = zlib.crc32(part if isinstance(part, (bytes, bytearray))
                         else numpy.ascontiguousarray(part).tobytes(), crc)
    print(f"{crc:08x}")


def perceptron(data, out):
    from sklearn.neural_network import MLPClassifier
    x, y, test = read(data)
    net = MLPClassifier((128,), solver="sgd", batch_size=128, learning_rate_init=0.01, max_iter=1,
                        random_state=1)
    net.fit(x, y)
    write(out, net.predict_proba(test), *net.coefs_, *net.intercepts_)


def xgboost(data, out):
    import xgboost as package
    x, y, test = read(data)
    rows = slice(0, 10000)  # some seconds of Fashion-MNIST
    model = package.XGBClassifier(n_estimators=20, tree_method="hist", subsample=0.8,
                                  random_state=1,
                                  n_jobs=int(os.environ["THREADS"]))
    model.fit(x[rows], y[rows])
    write(out, model.predict_proba(test), model.get_booster().save_raw("json"))


def torch(data, out, world, rank, store):
    import torch as package
    x, y, test = (package.tensor(part) for part in read(data))
    package.manual_seed(1)
    package.set_num_threads(1)
    package.distributed.init_process_group("gloo", f"file://{store}", world_size=int(world),
                                           rank=int(rank))
    nn = package.nn
    net = nn.Sequential(nn.Linear(x.shape[1], 128), nn.ReLU(), nn.Linear(128, int(y.max()) + 1))
    together = nn.parallel.DistributedDataParallel(net)
    optimizer = package.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for batch in package.randperm(len(x)).split(128):
        mine = batch[int(rank)::int(world)]
        optimizer.zero_grad()
        nn.functional.cross_entropy(together(x[mine]), y[mine]).backward()
        optimizer.step()
    if rank == "0":
        with package.no_grad():
            write(out, net(test).softmax(1).numpy(),
                  *(part.numpy() for part in net.state_dict().values()))


def predictions(path):
    """Of JSON lines of `dtrain predict`, or of a file that write() made."""
    with open(path, encoding="utf-8") as file:
        lines = file.readlines()
    if lines[0].startswith("{"):
        return numpy.array([json.loads(line)["probabilities"] for line in lines])
    return numpy.loadtxt(lines)


def compare(*paths):
    first = predictions(paths[0])
    print(f"{max(numpy.abs(predictions(path) - first).max() for path in paths):.3g}")


if __name__ == "__main__":
    {"table": make_table, "perceptron": perceptron, "xgboost": xgboost, "torch": torch,
     "compare": compare}[sys.argv[1]](*sys.argv[2:])
