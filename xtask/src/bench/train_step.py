"""Forward, backward, clipping and AdamW of the tiny Llama on 8 rows of 128 tokens, in PyTorch on one thread.

 python train_step.py STEPS, with shared/bench/python on PYTHONPATH
"""
import json, resource, statistics, sys, time, warnings
warnings.filterwarnings("ignore")
import torch
from tiny_llama import V, model

torch.set_num_threads(1)
lm = model()
optimizer = torch.optim.AdamW(lm.parameters(), lr=1e-4)
ids = torch.randint(0, V - 3, (8, 129), generator=torch.Generator().manual_seed(0))
seconds = []
for _ in range(int(sys.argv[1]) + 2):
    start = time.process_time()
    logits = lm(input_ids=ids[:, :-1], use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
    optimizer.step()
    seconds.append(time.process_time() - start)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(dict(task="torch train", cpu_ms_med=1e3 * statistics.median(seconds[2:]), peak_rss_mb=peak)))
