#!/usr/bin/env python3
"""Runs dtrain on clusters that SimGrid simulates: build/sim/dtrain, which `make sim` builds.

    sim.py run [--hosts H] [--gbit G] [--us U] KEY=VALUE ...
        one run; what it prints
    sim.py table [--hosts 2,4,8] [--gbit 1,10] KEY=VALUE ...
        ms a step, beside the bound
    sim.py schedules [--seed N] [--count N] [--hosts H] KEY=VALUE ...
        late hosts, links and layers, drawn by seed: all must end with the same bits

Hosts hang on one switch, by links of G Gbit/s and U microseconds; the bank is on the first worker's
host. KEY=VALUE are dtrain's own, without blanks. A table has seconds of this machine's CPU beside
the simulated ones.
--group N --uplink G: N hosts each have a switch of their own, with G Gbit/s to the others (a fat
tree; more than the hosts' links together: no limit); with --pairs so much to each other group (a
dragonfly).
--stall 3,0.2,1: host 3's links stand still from 0.2 s on, for one second.
--message: microseconds of a processor to send or receive one; --value, --byte: nanoseconds for each
of its values and bytes, at either end.
--cores N: all hosts share N cores for computing and messages, as namespaces of one machine do; else
each rank has a processor. On two cores of a Zen 4, --cores 2 --message 4.5 --byte 0.3 --value 1
stand for what is measured: byte and value are fitted to 4 hosts at 10 Gbit/s, and the message to q8
on 16 hosts at 1 Gbit/s.
--fold: gradients are not computed, and large memory lies on the same pages, for networks and
clusters that do not fit this machine: times are those of the network and of --flops, values are
wrong.
"""
import argparse
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

# Of a link's bits a second, those that are the messages' own: fitted to two hosts at 1 Gbit/s.
BANDWIDTH = 0.95
SMPI = ['smpi/simulate-computation:no', f'smpi/bw-factor:0:{BANDWIDTH}', 'smpi/lat-factor:0:1',
        'smpi/test:0', 'smpi/iprobe:0',
        'smpi/wtime:0', 'smpi/coll-selector:ompi',
        # Messages that no rank waits for pile up: SMPI walks a list of them for each.
        'smpi/send-is-detached-thresh:1024']
VALUE_BYTES = {'f32': 4, 'bf16': 2, 'q8': 1}
BUILD = os.environ.get('BUILD', 'build')


def platform(links, cores):
    """Of each host (bytes a second, seconds, its other properties): what SMPI's collectives see is
    a switch. No rank is on the host of the cores that they share."""
    text = ["<?xml version='1.0'?>", '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
            '<platform version="4.1"><zone id="cluster" routing="Cluster">']
    for i, (speed, latency, *more) in enumerate(links):
        properties = {'speed': BANDWIDTH * speed, 'latency': latency, **(more[0] if more else {})}
        text += [f'<host id="host{i}" speed="1Gf">',
                 *(f'<prop id="{k}" value="{v}"/>' for k, v in properties.items()), '</host>']
        text += [f'<link id="{way}{i}" bandwidth="{speed:.0f}Bps" latency="{latency * 1e6:.3f}us"/>'
                 for way in ('up', 'down')]
        text.append(f'<host_link id="host{i}" up="up{i}" down="down{i}"/>')
    if cores:
        text.append(f'<host id="cores" speed="1Gf" core="{cores}"/>')
    return '\n'.join(text + ['<router id="switch"/></zone></platform>'])


def cpu_secs():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def simulate(links, keys, environment, patience=float(os.environ.get('SIM_PATIENCE', 300))):
    """One run; (records, what was printed, seconds of CPU). Exits where it fails."""
    with tempfile.TemporaryDirectory(prefix='dtrain-sim.') as place:
        with open(f'{place}/platform.xml', 'w') as file:
            file.write(platform(links, int(environment.get('SIM_CORES', 0))))
        with open(f'{place}/hosts', 'w') as file:
            file.write('\n'.join(['host0'] + [f'host{i}' for i in range(len(links))]) + '\n')
        command = ['smpirun', '-platform', f'{place}/platform.xml', '-hostfile', f'{place}/hosts',
                   '-np', str(len(links) + 1), *[f'--cfg={setting}' for setting in SMPI],
                   '--log=root.thres:warning', f'{BUILD}/sim/dtrain', *keys,
                   f'run.dir={place}/run', 'run.threads=1', 'run.stall_secs=0']
        before = cpu_secs()
        run = subprocess.Popen(command,
                               env=dict(os.environ, OMP_NUM_THREADS='1',
                                        SIM_BLOCK=str(int('train.mode=async' not in keys)),
                                        **environment),
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True)
        try:
            text, _ = run.communicate(timeout=patience)
            end = f'ended with {run.returncode}'
        except subprocess.TimeoutExpired:
            end = f'has not ended after {patience} s'
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
                text, _ = run.communicate()
        cpu = cpu_secs() - before
        if run.returncode or not os.path.exists(f'{place}/run/metrics.jsonl'):
            sys.exit(f'{" ".join(command)}\n{text[-4000:]}\nsim: {end}; {environment}')
        with open(f'{place}/run/metrics.jsonl') as file:
            records = [json.loads(line) for line in file]
    return records, text, cpu


def environment_of(args, hosts, keys):
    words = dict(key.split('=', 1) for key in keys)
    rows = args.rows or int(words.get('train.batch', 128)) / hosts
    out = {'SIM_FLOPS': str(args.flops), 'SIM_ROWS': str(rows)} if args.flops else {}
    out['SIM_MESSAGE'] = str(args.message * 1e-6)
    value_bytes = VALUE_BYTES[words.get('train.wire', 'f32')]
    out['SIM_BYTE'] = str((args.value / value_bytes + args.byte) * 1e-9)
    out['SIM_CORES'] = str(args.cores)
    if args.fold:
        out |= {'SIM_FOLD': '1000000',
                'SIM_BUCKETS': str(len(words.get('model.hidden', '').split(',')) + 1)}
    return out


def cluster(args, hosts, gbit):
    links = []
    for i in range(hosts):
        more = {'group': i // args.group, 'group_speed': BANDWIDTH * args.uplink * 1e9 / 8,
                'pairs': int(args.pairs)} if args.group else {}
        if args.stall and int(args.stall.split(',')[0]) == i:
            more |= dict(zip(('stall_at', 'stall'), args.stall.split(',')[1:]))
        links.append((gbit * 1e9 / 8, args.us * 1e-6, more))
    return links


def cmd_run(args):
    hosts, gbit = int(args.hosts), float(args.gbit)
    _, text, cpu = simulate(cluster(args, hosts, gbit), args.keys,
                            environment_of(args, hosts, args.keys))
    print(text, end='')
    print(f'sim: {hosts} hosts at {gbit:g} Gbit/s: {cpu:.1f} s of CPU')


def cmd_table(args):
    print(f'{"hosts":>5} {"Gbit/s":>6} {"ms a step":>10} {"bound ms":>9} {"samples/s":>10} '
          f'{"CPU s":>7}')
    for gbit in map(float, args.gbit.split(',')):
        for hosts in map(int, args.hosts.split(',')):
            keys = args.keys + ([f'train.batch={hosts * args.batch}'] if args.batch else [])
            batch = int(dict(key.split('=', 1) for key in keys).get('train.batch', 128))
            _, text, cpu = simulate(cluster(args, hosts, gbit), keys,
                                    environment_of(args, hosts, keys))
            params = int(re.search(r'\ball\s+(\d+)', text).group(1))
            completed = re.search(r'completed at step \d+: (\S+) samples/s', text)
            if not completed:
                sys.exit(f'{text}sim: has not completed')
            rate = float(completed.group(1))
            bound = 2 * (hosts - 1) / hosts * params * 4 / (gbit * 1e9 / 8)
            print(f'{hosts:5} {gbit:6g} {1e3 * batch / rate:10.2f} {1e3 * bound:9.2f} '
                  f'{rate:10.0f} {cpu:7.1f}', flush=True)


def cmd_schedules(args):
    hosts = int(args.hosts)
    bits, begin = {}, time.time()
    for seed in range(args.seed, args.seed + args.count):
        draw = random.Random(seed)
        links = [(10 ** draw.uniform(6.5, 9.5), 10 ** draw.uniform(-5.5, -2.5))
                 for _ in range(hosts)]
        late = {'SIM_SEED': str(seed), 'SIM_JITTER': str(10 ** draw.uniform(-5, -1))}
        records, _, _ = simulate(links, args.keys, late)
        end = records[-1]
        bits.setdefault((end['params_crc32c'], end['step']), []).append(seed)
        if len(bits) > 1:
            sys.exit(f'sim: seed {seed} ends otherwise than those before it: {bits}')
    (crc, step), = bits
    print(f'sim: {args.count} schedules on {hosts} hosts: params_crc32c {crc} at step {step}, '
          f'{time.time() - begin:.0f} s')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=['run', 'table', 'schedules'])
    parser.add_argument('--hosts', default='4')
    parser.add_argument('--gbit', default='1')
    parser.add_argument('--us', type=float, default=25, help='latency of a link')
    parser.add_argument('--flops', type=float, default=0,
                        help="a worker's multiply-adds a second; 0: computing takes no time")
    parser.add_argument('--rows', type=float, default=0,
                        help='a worker computes a step; 0: its share of the batch')
    parser.add_argument('--batch', type=int, default=0,
                        help="rows a worker reads a step; 0: train.batch's share")
    parser.add_argument('--message', type=float, default=0)
    parser.add_argument('--value', type=float, default=0)
    parser.add_argument('--byte', type=float, default=0)
    parser.add_argument('--cores', type=int, default=0)
    parser.add_argument('--group', type=int, default=0)
    parser.add_argument('--uplink', type=float, default=0)
    parser.add_argument('--pairs', action='store_true')
    parser.add_argument('--stall')
    parser.add_argument('--fold', action='store_true')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=20)
    parser.add_argument('keys', nargs='*', metavar='KEY=VALUE')
    args = parser.parse_intermixed_args()
    # so that what runs is ended, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('sim: stopped'))
    for key in args.keys:
        if re.search(r'\s', key):
            sys.exit(f'sim: {key!r}: smpirun takes no blanks')
    {'run': cmd_run, 'table': cmd_table, 'schedules': cmd_schedules}[args.what](args)


if __name__ == '__main__':
    main()
