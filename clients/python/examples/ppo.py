"""PPO in one file, in the style of CleanRL: python ppo.py [updates]. Needs torch.

60 updates, 122,880 steps, take 64 s of processor time on an EPYC core, beside the server. The mean return of 32 episodes, which explore,
rises from -1 to 68. The default configuration earns 58.6.
"""

import sys
import time

import numpy as np
import torch
from torch.distributions import Categorical

from servegym import make_vec

UPDATES, ENVS, STEPS, EPOCHS, BATCH = int(sys.argv[1]) if len(sys.argv) > 1 else 60, 32, 64, 8, 256
GAMMA, LAMBDA, CLIP, ENTROPY = 0.97, 0.95, 0.2, 0.003
torch.manual_seed(0)
# More threads make networks of this size slower.
torch.set_num_threads(1)
started = time.monotonic()

envs = make_vec(ENVS, task_id="bursty_workload", gamma=GAMMA)
heads = envs.single_action_space.nvec.tolist()
size = envs.single_observation_space.shape[0] - sum(heads)
network = lambda outputs: torch.nn.Sequential(  # noqa: E731
    torch.nn.Linear(size, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, outputs)
)
actor, critic = network(sum(heads)), network(1)
torch.nn.init.zeros_(actor[-1].weight)
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3, eps=1e-5)


def policy(seen, bonus):
    """A categorical distribution for each knob; the bins in force, which observations end with, get the bonus."""
    logits = actor(seen[..., :size]) + bonus * seen[..., size:]
    return [Categorical(logits=part) for part in logits.split(heads, -1)]


def log_prob(knobs, actions):
    return sum(knob.log_prob(actions[..., head]) for head, knob in enumerate(knobs))


seen, ended = torch.tensor(envs.reset(seed=0)[0]), np.zeros(ENVS, bool)
for update in range(UPDATES):
    left = 1 - update / UPDATES
    bonus = 1 + 3 * left
    optimizer.param_groups[0]["lr"] = 1e-3 * left
    rows = []
    for _ in range(STEPS):
        with torch.no_grad():
            knobs = policy(seen, bonus)
            actions = torch.stack([knob.sample() for knob in knobs], -1)
            value = critic(seen[:, :size])[:, 0]
        after, rewards, _, truncated, infos = envs.step(actions.numpy())
        # An environment that has ended starts anew in this step, whatever the action: there is nothing to learn from it.
        told = (torch.tensor(rewards), torch.tensor(truncated), torch.tensor(~ended))
        rows.append((seen, actions, log_prob(knobs, actions), value, *told))
        seen, ended = torch.tensor(after), truncated
        if truncated.any():
            print(f"{(update + 1) * ENVS * STEPS} steps: mean return {infos['episode']['r'][truncated].mean():.2f}")
    states, actions, old, values, rewards, ends, valid = (torch.stack(column) for column in zip(*rows, strict=True))
    with torch.no_grad():
        following = torch.cat([values[1:], critic(seen[:, :size]).T])
        advantages, running = torch.zeros_like(values), torch.zeros(ENVS)
        for t in reversed(range(STEPS)):
            # The end is a time limit: the value of the last observation stands for what would have come.
            running = rewards[t] + GAMMA * following[t] - values[t] + GAMMA * LAMBDA * running * ~ends[t]
            advantages[t] = running
    data = [part[valid] for part in (states, actions, old, advantages.float(), (advantages + values).float())]
    for batch in (part for _ in range(EPOCHS) for part in torch.randperm(len(data[0])).split(BATCH)):
        states, chosen, old, advantage, target = (part[batch] for part in data)
        knobs = policy(states, bonus)
        ratio = (log_prob(knobs, chosen) - old).exp()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        gain = torch.min(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage).mean()
        entropy = sum(knob.entropy() for knob in knobs).mean()
        loss = 0.5 * (critic(states[:, :size])[:, 0] - target).pow(2).mean() - gain - ENTROPY * entropy
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*actor.parameters(), *critic.parameters()], 0.5)
        optimizer.step()
print(f"{time.monotonic() - started:.0f} s")
