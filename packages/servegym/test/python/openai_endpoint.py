"""Uses an OpenAI-compatible endpoint with the official client, and prints what came of it as JSON."""

import json
import sys

import openai

base_url, model = sys.argv[1:3]
client = openai.OpenAI(base_url=base_url, api_key="any", max_retries=0)

streamed = 0
finish_reason = None
usage = None
for chunk in client.chat.completions.create(
    model=model,
    messages=[{"role": "user", "content": "Hello"}],
    max_tokens=9,
    stream=True,
    stream_options={"include_usage": True},
    extra_body={"ignore_eos": True, "priority": 1},
):
    if chunk.usage:
        usage = chunk.usage.completion_tokens
    for choice in chunk.choices:
        streamed += bool(choice.delta.content)
        finish_reason = choice.finish_reason or finish_reason

whole = client.completions.create(model=model, prompt="Once", max_tokens=3000)

try:
    client.completions.create(model="another", prompt="Once")
    error = None
except openai.APIError as caught:
    error = [type(caught).__name__, caught.code]

print(
    json.dumps(
        {
            "models": [each.id for each in client.models.list()],
            "streamed": streamed,
            "usage": usage,
            "finish_reason": finish_reason,
            "whole": whole.choices[0].finish_reason,
            "error": error,
        }
    )
)
