"""Random configurations of all keys in `dtrain options`: a new key is drawn by type and range."""
import json
import subprocess

# What the rows decide, what tests of their own look at, and what a job is steered by.
LEFT_ALONE = """
run.dir run.resume run.init run.stall_secs run.replicas
data.train data.train_labels data.eval data.eval_labels data.eval_fraction data.group data.time
data.format data.header data.label data.ignore data.weight data.separator data.missing
data.categories data.features data.min_count data.hash_bits data.shape data.x data.y
model.layers model.task train.lazy eval.json
""".split()

# Values where a type and a range say too little: small ones, and the ends of ranges.
LIKELY = {
    "run.seed": "0 1 7 123456789012",
    "run.threads": "1 1 1 2",
    "run.kernel": "auto auto env Haswell",
    "run.checkpoint_steps": "0 1 2 5",
    "run.checkpoint_secs": "0 600 0.01",
    "run.keep": "0 1 2 5",
    "run.log_steps": "1 2 3 100",
    "data.test_fraction": "0 0.1 0.3",
    "data.folds": "0 2 3",
    "data.fold": "0 0 0 1",
    "data.gap": "0 0 0 3",
    "data.scale": "1 0.5 -2 0.01",
    "data.clip": "0 1 1.5 5",
    "data.memory_mb": "1 1024",
    "data.encode": "none none auto normal ple cosine",
    "data.encode_bins": "2 5 16",
    "data.encode_scale": "0.05 0.2 2",
    "data.encode_width": "1 4",
    "data.shuffle_window": "0 1 5 64 1000",
    "model.hidden": "7 8,5 16,3,4 1 70",
    "model.dropout": "0 0.1 0.5",
    "model.embedding": "0 0 0 2",
    "train.owners": "0 1 2 9",
    "train.batch": "0 1 6 16 37 64 1000",
    "train.epochs": "0 0.5 1 2 2.3 4",
    "train.max_steps": "0 1 3 8 12 20",
    "train.lr": "0 0.0001 0.001 0.01 0.05",
    "train.wide_lr": "0 0.001 0.03",
    "train.momentum": "0 0.5 0.9",
    "train.beta1": "0 0.5 0.9",
    "train.beta2": "0 0.9 0.999",
    "train.alpha": "0 0.9 0.99",
    "train.epsilon": "-1 1e-8 1e-3 1",
    "train.l1": "0 0.001 0.1",
    "train.weight_decay": "0 0.001 0.1",
    "train.clip_norm": "0 0.001 0.1 10",
    "train.plateau_evals": "1 2",
    "train.warmup_steps": "0 1 3 100",
    "train.decay_steps": "0 1 2 7 100",
    "train.decay_rate": "0.1 0.5 1 1.1",
    "train.quantiles": "0.5 0.1,0.9 0.05,0.5,0.95",
    "train.min_lr": "0 0.00001 0.001",
    "train.local_steps": "1 2 3 7",
    "train.groups": "0 1 2 3",
    "train.outer_lr": "0.7 1 0.4 0",
    "train.outer_momentum": "0 0.5 0.9",
    "train.local_after": "0 2 5",
    "train.staleness": "-1 0 1 3",
    "train.warm_start_steps": "0 2",
    "eval.steps": "-1 0 1 3",
    "eval.batches": "0 1 2",
    "eval.patience": "0 1 2",
    "eval.also": "train:20 train:999,train2:none train:0",
    "eval.positive": "0 1 no",
    "eval.threshold": "0.5 0.5 0.3 f1 balanced_accuracy cost:1,5 recall:0.9",
    "eval.throttle_secs": "0 0.01",
    "eval.start_delay_secs": "0 0.01",
    "export.keep": "0 1 5",
}
# Words that most configurations do not go with are rarer than the others.
RARE = {"train.mode": "async", "eval.dedicated": "yes", "train.optimizer": "ftrl",
        "train.exchange": "reduce",
        "data.normalize_target": "yes", "train.wide_optimizer": "ftrl",
        "train.class_weight": "balanced"}
WRONG = ["nonsense", "-1", "1e", "", "nan", "99999999999999999999", "0x10", "1 2", "yes no", "-0.5",
         ","]


def options(dtrain):
    """{key: its JSON schema} of those that `dtrain train` takes and that can be drawn."""
    schema = json.loads(subprocess.run([dtrain, "options", "--json-schema"], capture_output=True,
                                       check=True).stdout)
    return {f"{section}.{key}": option for section, of in schema["properties"].items()
            if section not in ("predict", "serve") for key, option in of["properties"].items()}


def values_of(key, option):
    if key in LIKELY:
        return LIKELY[key].split()
    if "enum" in option:
        words = [word for word in option["enum"] if isinstance(word, str)]
        return [word for word in words for _ in range(1 if RARE.get(key) == word else 3)]
    if option.get("type") in ("integer", "number"):
        least = option.get("minimum", 0)
        near = [least, least + 1, option["default"], (2 * float(option["default"]))]
        return [f"{float(v):.17g}" for v in near if least <= float(v) <= option.get("maximum", v)]
    return [option["default"]] if option["default"] else []


# ---- networks ------------------------------------------------------------------------------------

def activation(rng):
    return rng.choice(["", " relu", " tanh", " sigmoid", " gelu", " silu", " leaky_relu",
                       " softplus"])


def flat_item(rng):
    width = rng.choice([1, 4, 6, 9, 17])
    return rng.choice([f"dense {width}{activation(rng)}", f"dense {width}{activation(rng)}",
                       "batchnorm", "layernorm",
                       f"residual(dense {width}{activation(rng)}, dropout 0.2)", "dropout 0.3",
                       "scale", "tanh"])


def picture_item(rng):
    channels, size = rng.choice([1, 2, 4, 5]), rng.choice(["1x1", "3x3", "2x3", "5x1"])
    return rng.choice([f"conv {channels} {size} pad same{activation(rng)}",
                       f"conv {channels} {size} stride 2",
                       f"conv {channels} 2x2 pad 1 groups 1{activation(rng)}", "maxpool 2",
                       "avgpool 2 stride 1",
                       f"residual(conv {channels} 3x3 pad same, batchnorm)", "batchnorm relu",
                       "layernorm", "upsample 2",
                       f"conv1d {channels} 3", "dropout 0.2"])


def network(rng, shape):
    items = []
    if shape and rng.random() < 0.8:
        items += [picture_item(rng) for _ in range(rng.randint(1, 3))]
        items += rng.choice([["globalpool"], ["flatten"], []])
    items += [flat_item(rng) for _ in range(rng.randint(0, 3))]
    return ", ".join(items) or "linear"


def augmentation(rng):
    return ", ".join(rng.sample(["shift 1", "shift 2", "flip", "cutout 2", "noise 0.1"],
                                rng.randint(1, 3)))


# ---- a configuration -----------------------------------------------------------------------------

def draw(rng, rows, known):
    """{key: value}: of some keys, of the rows, and now and then of one that is wrong."""
    config = {"run.replicas": str(rng.choice([1, 2, 2, 3, 4, 5])),
              "train.max_steps": str(rng.choice([4, 8, 20])),
              "train.lr": rng.choice(["0.001", "0.01"]),
              "train.batch": rng.choice(["8", "16", "32"]), "model.hidden": "8"}
    share = rng.choice([0.03, 0.1, 0.2])
    for key, option in known.items():
        values = values_of(key, option)
        if key not in LEFT_ALONE and values and rng.random() < share:
            config[key] = rng.choice(values)
    if "report.prometheus" in known and rng.random() < 0.05:
        config["report.prometheus"] = "run.prom"
    if rng.random() < (0.7 if rows.shape else 0.3):
        config = {key: value for key, value in config.items() if not key.startswith("model.")}
        config["model.layers"] = network(rng, rows.shape)
    if rows.shape and rng.random() < 0.3:
        config["data.augment"] = augmentation(rng)
    if rng.random() < 0.15:
        config.update({"train.mode": "async",
                       "train.staleness": rng.choice(["-1", "-1", "2", "0"])})
    if rng.random() < 0.15:
        config.update({"train.local_steps": rng.choice("237"), "train.groups": rng.choice("0123")})
    if int(config.get("train.groups", 0)) > int(config["run.replicas"]) and rng.random() < 0.9:
        config["train.groups"] = config["run.replicas"]
    held_out = rng.random()
    if held_out < 0.3:
        config["data.eval_fraction"] = rng.choice(["0.1", "0.25", "0.5"])
    elif held_out < 0.85 and "data.eval" in rows.likely:
        config.update({key: rows.likely[key][0] for key in ("data.eval", "data.eval_labels")
                       if key in rows.likely})
    if "data.eval" in config and rng.random() < 0.3:
        config["eval.also"] = f"later:{config['data.eval']},train:{rng.choice([1, 30, 999])}"
        if "data.eval_labels" in config:
            config["eval.also_labels"] = f"later:{config['data.eval_labels']}"
    for key, values in rows.likely.items():
        if not key.startswith("data.eval") and rng.random() < 0.4:
            config[key] = rng.choice(values)
    config.update(rows.keys)
    if rng.random() < 0.07:
        config[rng.choice([key for key in known if key != "run.dir"])] = rng.choice(WRONG)
    return config
