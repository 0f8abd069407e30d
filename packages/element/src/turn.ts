const channel = new MessageChannel();

/** Lets messages into a worker that have arrived meanwhile. */
export function turn(): Promise<unknown> {
  return new Promise((resume) => {
    channel.port2.onmessage = resume;
    channel.port1.postMessage(null);
  });
}
