"""A stand-in for a language model: an OpenAI-compatible server that answers what it was given, in turn."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class StandIn:
    """Address of the server, what it is to answer, and the messages that it was sent."""

    def __init__(self, answers: list[str]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                stand_in.asked.append(json.dumps(body.get("messages") or body.get("input")))
                content = stand_in.answers[min(len(stand_in.asked), len(stand_in.answers)) - 1]
                streams = body.get("stream", False)
                reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "stand-in"}
                choice = {"index": 0, "finish_reason": "stop"}
                reply["choices"] = [{**choice, "delta" if streams else "message": {"role": "assistant", "content": content}}]
                reply["usage"] = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                if streams:
                    data = f"data: {json.dumps({**reply, 'object': 'chat.completion.chunk'})}\n\ndata: [DONE]\n\n".encode()
                else:
                    data = json.dumps(reply).encode()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream" if streams else "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def stand_in() -> Iterator[Callable[[list[str]], StandIn]]:
    started: list[StandIn] = []

    def start(answers: list[str]) -> StandIn:
        started.append(StandIn(answers))
        return started[-1]

    yield start
    for each in started:
        each.close()
