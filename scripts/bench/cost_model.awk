# The cost of an exchange between hosts that own slices (src/comm/owners.c), in one place: fits it
# to what was measured, prints predicted beside measured, and projects it.
#
# N hosts, each with a partial sum of a replica; V parameters, in buckets (a layer each); a link
# carries B bytes/s each way; a value takes `size` bytes: 4, with train.wire=bf16 2, with q8
# 1 + 4 / 256 (src/comm/wire.h). Each host sends and receives the sums of the others' slices and the
# weights, or with a rounded wire the updates, of all:
#
#   wire = 2 (N - 1) / N * V * size * FRAME / B
#          FRAME: bytes on the wire a byte sent, 1514 / 1448
#   cpu  = crowd * ((N - 1) / N * V * size * byte + messages * message)
#          byte: to send, receive and add one; message: to send or receive one; rounding costs too
#          little to see; messages = sum over buckets 4 (N - 1) ceil(P_bucket / N / CHUNK), at most
#          CHUNKS each; crowd: hosts that share a core of the bed (1 on a real cluster)
#   step = 2 latency + max(wire, cpu) + min(wire, cpu) / DEPTH
#
# for wire and cpu work side by side, but for the first and last chunk of each slice. With local
# steps the exchange comes every H steps. Latency, byte and message are fitted: least squares of the
# logarithms.
#
# Tables that sparse features read are no part of V: each host sends the rows that its batches touch
# to all others, so that a link carries (N - 1) rows (width + 1) * 4 bytes more each way
# (src/comm/rows.h).
#
#   awk -f cost_model.awk -v cores=N MEASURED
#       lines of MEASURED: NET BIT/S HOSTS MS [WIRE]; WIRE: f32, bf16 or q8
#   awk -f cost_model.awk -v given="LATENCY BYTE MESSAGE" [-v sizes_given="2 4 ..."]
#       seconds: instead of what is fitted
# prints
#   fit LATENCY_US BYTE_NS MESSAGE_US
#   predicted NET BIT/S HOSTS MEASURED_MS PREDICTED_MS BOUND_MS WIRE
#   project NET BIT/S HOSTS H MS WIRE
#       a step, of the exchange alone; f32 and q8 (bf16 lies between)
#   start NET BIT/S HOSTS SECS STATE_SECS
#       the first weights to all; a checkpoint's gathering of adam's state
BEGIN {
    FRAME = 1514 / 1448; CHUNK = 15360; CHUNKS = 64; DEPTH = 4
    SIZE["f32"] = 4; SIZE["bf16"] = 2; SIZE["q8"] = 1 + 4 / 256
    split("784-512-256-10 784-4096-4096-10 1G", nets, " ")
    split("1e9 1e10 1e11", rates, " ")
    split("1 32 500", rounds, " ")
    split("f32 q8", wires, " ")
    split(sizes_given ? sizes_given : "2 4 8 16 64 256 1024", sizes, " ")
}
NF == 4 || NF == 5 {
    net[++n] = $1; rate[n] = $2 + 0; hosts[n] = $3 + 0; ms[n] = $4 + 0
    wire_of[n] = NF == 5 ? $5 : "f32"
    if (!(wire_of[n] in SIZE)) {
        print "cost_model.awk: no wire " $5 >"/dev/stderr"
        bad = 1
        exit 1
    }
}
END {
    if ((!n && !given) || bad) exit 1
    if (given) {
        split(given, word, " ")
        secs["latency"] = word[1] + 0
        secs["byte"] = word[2] + 0
        secs["message"] = word[3] + 0
    } else {
        fit()
    }
    printf "fit %.4g %.4g %.4g\n", secs["latency"] * 1e6, secs["byte"] * 1e9, secs["message"] * 1e6
    for (i = 1; i <= n; i++) {
        predicted = 1e3 * step(net[i], rate[i], hosts[i], cores, wire_of[i])
        bits = params_of(net[i]) * SIZE[wire_of[i]] * 8
        bound = 2e3 * (hosts[i] - 1) / hosts[i] * bits / rate[i]
        print "predicted", net[i], rate[i], hosts[i], ms[i], predicted, bound, wire_of[i]
    }
    for (w = 1; w in nets; w++)
        for (r = 1; r in rates; r++)
            for (s = 1; s in sizes; s++) project(nets[w], rates[r] + 0, sizes[s] + 0)
}

function project(what, bits, count,    h, k, first) {
    for (k = 1; k in wires; k++)
        for (h = 1; h in rounds; h++)
            print "project", what, bits, count, rounds[h],
                1e3 * step(what, bits, count, count, wires[k]) / rounds[h], wires[k]
    # The first weights, and a checkpoint's state, are floats.
    first = 4 * params_of(what) * FRAME * 8 / bits
    print "start", what, bits, count, first, 2 * (count - 1) / count * first
}

# Buckets of a network into P[1..]; a number with G: that many parameters in 96 layers.
function buckets_of(what, P,    width, k, layers) {
    if (what ~ /G$/) {
        for (k = 1; k <= 96; k++) P[k] = (what + 0) * 1e9 / 96
        return 96
    }
    layers = split(what, width, "-") - 1
    for (k = 1; k <= layers; k++) P[k] = (width[k] + 1) * width[k + 1]
    return layers
}

function params_of(what,    P, k, total) {
    for (k = buckets_of(what, P); k > 0; k--) total += P[k]
    return total
}

function messages_of(what, count,    P, k, chunks, total) {
    for (k = buckets_of(what, P); k > 0; k--) {
        chunks = P[k] / count / CHUNK
        chunks = chunks > int(chunks) ? int(chunks) + 1 : chunks
        total += 4 * (count - 1) * (chunks < CHUNKS ? chunks : CHUNKS)
    }
    return total
}

# Seconds of a step.
function step(what, bits, count, on_cores, how,    sent, wire, cpu, crowd) {
    sent = (count - 1) / count * params_of(what) * SIZE[how]
    crowd = count > on_cores ? count / on_cores : 1
    wire = 2 * sent * FRAME * 8 / bits
    cpu = crowd * (sent * secs["byte"] + messages_of(what, count) * secs["message"])
    return 2 * secs["latency"] + (wire > cpu ? wire + cpu / DEPTH : cpu + wire / DEPTH)
}

function misfit(    i, d, total) {
    for (i = 1; i <= n; i++) {
        d = log(step(net[i], rate[i], hosts[i], cores, wire_of[i]) / ms[i] * 1e3)
        total += d * d
    }
    return total
}

# One constant after the other, up or down, by ever smaller factors.
function fit(    factor, best, before, k, order) {
    secs["latency"] = 1e-4; secs["byte"] = 1e-9; secs["message"] = 2e-6
    split("message byte latency", order, " ")
    best = misfit()
    for (factor = 4; factor > 1.005; factor = sqrt(factor))
        do {
            before = best
            for (k = 1; k in order; k++) best = turn(order[k], factor, best)
        } while (best < before)
}
# The misfit with the constant times or by the factor, if that is better; else the best one so far.
function turn(name, factor, best,    was, try) {
    was = secs[name]
    secs[name] = was * factor
    if ((try = misfit()) < best) return try
    secs[name] = was / factor
    if ((try = misfit()) < best) return try
    secs[name] = was
    return best
}
