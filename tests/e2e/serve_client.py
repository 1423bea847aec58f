"""Clients of `dtrain serve`, with Python's standard library alone.

    serve_client.py load PORT REQUESTS CONNECTIONS ROWS ANSWERS [MODEL]
        every answer has to be the one that `dtrain predict` gave; prints rate and latencies
    serve_client.py malformed PORT REQUESTS VALID
        wrong requests of every sort: 4xx each, or the connection closed; and the server
        answers afterwards
    serve_client.py slow PORT SECONDS
        a client that sends a byte now and then is closed within so many seconds
    serve_client.py idle PORT SECONDS
        a request on a connection that was idle for so long takes as long; it is answered
    serve_client.py unread PORT SECONDS ROW COUNT
        and one that reads a few bytes of its answer now and then
    serve_client.py stop PORT PID ROW
        a server that stops answers what it has begun to read, and refuses who comes now: at once
    serve_client.py full PORT
        bodies of 1 MiB until there are too many at once: 503, and none when they are gone
    serve_client.py answers PORT ROW COUNT
        after an answer of COUNT rows that is not read, only a small one has space
"""
import http.client
import json
import os
import random
import signal
import socket
import sys
import threading
import time

PREDICT = "/v1/models/default:predict"
INFER = "/v2/models/default/infer"


def load(port, requests, connections, rows_path, answers_path, model="default"):
    rows = [json.loads(line) for line in open(rows_path)]
    answers = [json.loads(line) for line in open(answers_path)]
    lock, secs, wrong, left = threading.Lock(), [], [], [int(requests)]

    def client(seed):
        draw = random.Random(seed)
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
        while True:
            with lock:
                if not left[0]:
                    return
                left[0] -= 1
            first = draw.randrange(len(rows))
            part = slice(first, first + draw.choice([1, 1, 1, 3, 17]))
            begin = time.perf_counter()
            try:
                connection.request("POST", f"/v1/models/{model}:predict",
                                   json.dumps({"instances": rows[part]}))
                response = connection.getresponse()
                body = json.loads(response.read())
            except Exception as error:  # a lost request is what this looks for
                body, response = repr(error), None
                connection.close()
            taken = time.perf_counter() - begin
            good = (response is not None and response.status == 200
                    and same(body["predictions"], answers[part]))
            with lock:
                secs.append(taken)
                if not good:
                    wrong.append(body)

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(int(connections))]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begin
    secs.sort()
    at = lambda share: 1000 * secs[min(len(secs) - 1, int(share * len(secs)))]
    print(f"requests={len(secs)} wrong={len(wrong)} rate={len(secs) / took:.0f} "
          f"p50_ms={at(.5):.2f} "
          f"p99_ms={at(.99):.2f} max_ms={1000 * secs[-1]:.2f}")
    for body in list(dict.fromkeys(str(body)[:300] for body in wrong))[:20]:
        print("wrong:", body)


def same(got, want):
    """Equal but for the last digits, which depend on how many rows are computed together."""
    if len(got) != len(want):
        return False
    for a, b in zip(got, want):
        if isinstance(a, dict):
            if a["class"] != b["class"] or a.get("label") != b.get("label"):
                return False
            a, b = a["probabilities"], b["probabilities"]
            if any(abs(x - y) > 1e-5 for x, y in zip(a, b)):
                return False
        elif abs(a - b["value"]) > 1e-4 * max(1, abs(a)):
            return False
    return True


def http_bytes(method, path, body=b"", headers=(), length=None):
    head = [f"{method} {path} HTTP/1.1", "Host: x", *headers]
    if length is None and body:
        length = len(body)
    if length is not None:
        head.append(f"Content-Length: {length}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def cases(valid):
    """(bytes to send, whether to half-close) without end; none of them is right."""
    draw, good = random.Random(7), json.dumps(valid).encode()
    row = valid["instances"][0]
    bodies = [
        b"", b"{", b"[]", b"{}", b"null", b"\xff\xfe\x00", b'{"instances":', b'{"instances":[]}',
        b'{"instances":7}', b'{"instances":[[]]}', b'{"instances":[[NaN]]}',
        b'{"instances":[[1e999]]}', b'{"inputs":{}}', b'{"inputs":[1]}', b'{"instances":[null]}',
        b'{"instances":[{"a":1}]}', b'{"instances":' + b"[" * 3000 + b"]" * 3000 + b"}",
        b'{"instances":[' + b"[" * 20 + b"1" + b"]" * 20 + b"]}", b'{"instances":[[true,false]]}',
        b'{"instances":[["x"]]}', b'{"instances":[[1]],"inputs":[[1]]}',
        b'{"instances":[[1]],"instances":[[2]]}',
        json.dumps({"instances": [row[:-1]]}).encode(),
        json.dumps({"instances": [row + [1]]}).encode(),
        json.dumps({"instances": [[1e39] * len(row)]}).encode(),
        json.dumps({"instances": [row] * 20000}).encode(),
        json.dumps({"instances": [row, row[:1]]}).encode(),
        b'{"instances":[[123456789012345678901234567890]]}',
    ]
    infer = [
        b"{}", b'{"inputs":[]}', b'{"inputs":[7]}',
        b'{"inputs":[{"name":"input","datatype":"FP32"}]}',
        b'{"inputs":[{"name":"input","datatype":"BYTES","shape":[1,1],"data":["x"]}]}',
        b'{"inputs":[{"name":"input","datatype":"FP32","shape":[-1,4],"data":[1]}]}',
        b'{"inputs":[{"name":"input","datatype":"FP32","shape":[9999999999,4],"data":[1]}]}',
        b'{"inputs":[{"name":"input","datatype":"FP32","shape":[2147483647,2147483647,4],'
        b'"data":[1]}]}',
        json.dumps({"inputs": [{"name": "input", "datatype": "FP32", "shape": [2, len(row)],
                                "data": row}]}).encode(),
        json.dumps({"inputs": [{"name": "input", "datatype": "FP32", "shape": [2**30, len(row)],
                                "data": row}]}).encode(),
    ]
    whole = [
        http_bytes("POST", "/v1/models/other:predict", good),
        http_bytes("POST", "/v1/models/default/versions/9:predict", good),
        http_bytes("POST", "/v1/models/default/versions/-1:predict", good),
        http_bytes("POST", "/nowhere", good),
        http_bytes("POST", "/v1/models/default/versions/99999999999999999999999:predict", good),
        http_bytes("PUT", PREDICT, good), http_bytes("DELETE", PREDICT), http_bytes("GET", PREDICT),
        http_bytes("POST", "/metrics", good), http_bytes("POST", PREDICT, b"", length=10**15),
        http_bytes("POST", PREDICT, b"", length="-5"), http_bytes("POST", PREDICT, b"", length="x"),
        http_bytes("POST", "/" + "a" * 60000, good),
        http_bytes("POST", PREDICT, good, headers=["X: " + "y" * 60000]),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n",
        b"\r\n" * 100 + b"x\r\n\r\n", b"\x00" * 100,
        http_bytes("POST", PREDICT, b"zz\r\n", headers=["Transfer-Encoding: chunked"]),
    ]
    while True:
        kind = draw.randrange(5)
        if kind == 0:
            yield http_bytes("POST", PREDICT, draw.choice(bodies)), False
        elif kind == 1:
            yield http_bytes("POST", INFER, draw.choice(infer)), False
        elif kind == 2:
            yield draw.choice(whole), False
        elif kind == 3:  # cut, and half-closed
            cut = http_bytes("POST", PREDICT, good)
            yield cut[:draw.randrange(len(cut) - 1)], True
        else:  # one byte of the JSON is another, and the JSON is none
            yield http_bytes("POST", PREDICT, b"}" + good[1:]), False


def malformed(port, requests, valid_path):
    valid = {"instances": [json.loads(open(valid_path).readline())]}
    counts, made = {}, cases(valid)
    for number in range(int(requests)):
        data, half = next(made)
        with socket.create_connection(("127.0.0.1", int(port)), timeout=20) as connection:
            try:
                connection.sendall(data)
                if half or number % 7 == 0:
                    connection.shutdown(socket.SHUT_WR)
                answer = connection.recv(65536)
            except OSError:  # closed before the whole request was there
                answer = b""
            status = answer[9:12].decode() if answer.startswith(b"HTTP/1.") else "closed"
            counts[status] = counts.get(status, 0) + 1
            if not (status == "closed" or status.startswith("4")):
                print(f"wrong: {status} for {data[:200]!r}: {answer[:300]!r}")
    print("answers:", " ".join(f"{status}={n}" for status, n in sorted(counts.items())))


def slow(port, seconds):
    begin = time.monotonic()
    data = http_bytes("POST", PREDICT, b"", length=1000)
    with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as connection:
        for byte in data + b" " * 1000:
            try:
                connection.send(bytes([byte]))
                connection.settimeout(0.2)
                if connection.recv(1) == b"":
                    break
            except socket.timeout:
                pass
            except ConnectionError:
                break
            if time.monotonic() - begin > float(seconds):
                print("wrong: still open")
                return
    print(f"closed after {time.monotonic() - begin:.1f} s")


def idle(port, seconds):
    whole = http_bytes("POST", PREDICT, b'{"instances":[]}')
    with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as connection:
        connection.sendall(whole)
        connection.recv(65536)
        time.sleep(float(seconds))
        connection.sendall(whole[:-1])
        time.sleep(float(seconds))
        connection.sendall(whole[-1:])
        got = connection.recv(65536)
        print(f"{'' if got.startswith(b'HTTP/1.1 400') else 'wrong: '}{got!r}")


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", int(port)), timeout=60).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass  # the server stopped listening during the handshake
    time.sleep(0.01)
    return False


def stop(port, pid, row):
    whole = http_bytes("POST", PREDICT, b'{"instances":[%s]}' % row.encode())
    with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as connection:
        connection.sendall(whole[:-1])
        while active(port) < 2:  # this question is one
            time.sleep(0.01)
        os.kill(int(pid), signal.SIGTERM)
        end = time.monotonic() + 2
        while not refuses(port) and time.monotonic() < end:
            pass
        print("" if time.monotonic() < end else "wrong: a new client waits")
        connection.sendall(whole[-1:])
        got = connection.recv(65536)
        print(f"{'' if got.startswith(b'HTTP/1.1 200') else 'wrong: '}{got!r}")


def active(port):
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return [int(line.split()[1]) for line in lines
            if line.startswith("dtrain_serve_active_requests")][0]


def unread(port, seconds, row, count):
    body = '{"instances":[' + ",".join([row] * int(count)) + "]}"
    with socket.socket() as connection:
        # Little of the answer fits the buffers of the two ends.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        connection.connect(("127.0.0.1", int(port)))
        connection.sendall(http_bytes("POST", PREDICT, body.encode()))
        begin, got = time.monotonic(), connection.recv(100)
        if not got.startswith(b"HTTP/1.1 200"):
            print(f"wrong: {got!r}")
        while active(port) > 1:
            if time.monotonic() - begin > float(seconds):
                print("wrong: still answered")
                return
            for _ in range(20):
                connection.recv(8192)
                time.sleep(0.05)
        print(f"closed after {time.monotonic() - begin:.1f} s")


def full(port):
    whole = http_bytes("POST", PREDICT, b" " * (1 << 20))

    def wait_for(wanted):
        end = time.monotonic() + 60
        status = None
        while status not in wanted and time.monotonic() < end:
            with socket.create_connection(("127.0.0.1", int(port)), timeout=30) as connection:
                connection.sendall(whole)
                status = int(connection.recv(65536)[9:12])
        print(f"{'' if status in wanted else 'wrong: '}{status}")

    held = [socket.create_connection(("127.0.0.1", int(port)), timeout=30) for _ in range(15)]
    for connection in held:
        connection.sendall(whole[:-1])
    wait_for([503])
    for connection in held:
        connection.close()
    wait_for([400])


def answers(port, row, count):
    def post(rows):
        connection = socket.create_connection(("127.0.0.1", int(port)), timeout=60)
        connection.sendall(http_bytes("POST", PREDICT,
                                      b'{"instances":[' + b",".join([row.encode()] * rows) + b"]}"))
        status = connection.recv(12)[9:].decode()
        return connection, status

    def expect(rows, wanted):
        end, status = time.monotonic() + 60, None
        while status != wanted and time.monotonic() < end:
            connection, status = post(rows)
            connection.close()
        print(f"{'' if status == wanted else 'wrong: '}{rows} rows: {status}")

    held, status = post(int(count))
    print(f"{'' if status == '200' else 'wrong: '}{count} rows: {status}")
    expect(int(count), "503")
    expect(1, "200")
    held.close()
    expect(int(count), "200")


{"load": load, "malformed": malformed, "slow": slow, "idle": idle, "unread": unread, "stop": stop,
 "full": full, "answers": answers}[sys.argv[1]](*sys.argv[2:])
