/** Drawing all plots in one displayed frame would use it up; nobody sees that some follow a frame later. */
const DRAWINGS_PER_FRAME = 4;

/** Drawings that wait for a displayed frame. One that is asked for again keeps its place. */
export interface DrawQueue {
  add(draw: () => void): void;
  remove(draw: () => void): void;
}

export function createDrawQueue(requestFrame: (callback: () => void) => void): DrawQueue {
  const waiting = new Set<() => void>();
  let isRequested = false;
  const request = () => {
    if (isRequested || waiting.size === 0) return;
    isRequested = true;
    requestFrame(() => {
      isRequested = false;
      for (const draw of [...waiting].slice(0, DRAWINGS_PER_FRAME)) {
        waiting.delete(draw);
        draw();
      }
      request();
    });
  };
  return {
    add(draw) {
      waiting.add(draw);
      request();
    },
    remove(draw) {
      waiting.delete(draw);
    },
  };
}
