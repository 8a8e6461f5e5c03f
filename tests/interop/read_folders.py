"""Reads every folder under ROOT with transformers: writes its logits as `seen.json`, and the model in shards beside it.

 python read_folders.py ROOT, where ROOT/ids.json holds rows of tokens of one length
"""
import json, pathlib, sys
import torch
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM

root = pathlib.Path(sys.argv[1])
ids = torch.tensor(json.loads((root / "ids.json").read_text()))
for folder in sorted(path for path in root.iterdir() if path.is_dir()):
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    with safe_open(folder / "model.safetensors", "pt") as file:
        dtypes = sorted({str(file.get_tensor(name).dtype).removeprefix("torch.") for name in file.keys()})
    with torch.no_grad():
        logits = model.eval()(input_ids=ids).logits
    seen = dict(
        logits=logits.flatten().tolist(),
        dtypes=dtypes,
        config_dtype=str(AutoConfig.from_pretrained(folder).dtype).removeprefix("torch."),
        amiss=[str(x) for key in ("missing_keys", "unexpected_keys", "mismatched_keys") for x in info[key]],
    )
    (folder / "seen.json").write_text(json.dumps(seen))
    model.save_pretrained(folder / "sharded", max_shard_size="2KB")
