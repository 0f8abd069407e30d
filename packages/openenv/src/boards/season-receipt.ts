import { createHash } from 'node:crypto';

/** A submission as results have it, as far as its chain goes. */
interface ChainedSubmission {
  readonly number: number;
  readonly name: string;
  /** Runs of its actions in the order in which they were played: the index of an episode, and how many. */
  readonly order: readonly (readonly [episode: number, actions: number])[];
  readonly episodes: readonly { task_id: string | number; episode: number; actions: readonly unknown[] }[];
}

/** Digest of an admission: it covers the commitment, and every submission before. */
export function admissionDigest(before: string, number: number, name: string): string {
  return sha256(JSON.stringify([before, number, name]));
}

export function actionDigest(before: string, task: string | number, episode: number, action: string): string {
  return sha256(JSON.stringify([before, String(task), episode, action]));
}

/** What an entrant keeps: the number of a submission, its actions so far, and the digest of all that. */
export function receiptOf(number: number, actions: number, digest: string): string {
  return `${number}.${actions}.${digest}`;
}

/** Digests of a submission: of its admission, then after each of its actions. */
function digestsOf(admission: string, { order, episodes }: ChainedSubmission): string[] {
  const digests = [admission];
  const played = episodes.map(() => 0);
  for (const [index, actions] of order) {
    const { task_id, episode, actions: texts = [] } = episodes[index] ?? {};
    for (let i = 0; i < actions && played[index] < texts.length; i++) {
      const text = JSON.stringify(texts[played[index]++]);
      digests.push(actionDigest(digests.at(-1)!, task_id!, episode!, text));
    }
  }
  return digests;
}

/** What is wrong with submissions by their own receipts, and by those that entrants kept, as sentences. */
export function* receiptProblems(
  commitment: string,
  submissions: readonly (ChainedSubmission & { readonly receipt: string })[],
  kept: readonly string[],
): Generator<string> {
  const known = new Map<number, readonly string[]>();
  let admission = commitment;
  for (const submission of submissions) {
    const { number, name, receipt, episodes } = submission;
    admission = admissionDigest(admission, number, name);
    const digests = digestsOf(admission, submission);
    known.set(number, digests);
    const actions = episodes.reduce((sum, episode) => sum + episode.actions.length, 0);
    if (receipt !== receiptOf(number, actions, digests[actions] ?? '')) {
      yield `${name}: its receipt is not that of the rules, the names up to it and its actions.`;
    }
  }
  for (const text of kept) {
    const [, number, actions, digest] = /^(\d+)\.(\d+)\.([0-9a-f]{64})$/.exec(text) ?? [];
    const digests = known.get(Number(number));
    if (digest === undefined) yield 'Expected a receipt such as 1.200.5f2c..., got another text.';
    else if (digests === undefined) yield `There is no submission ${number}, which has a receipt.`;
    else if (digests[Number(actions)] !== digest) {
      yield `Submission ${number} does not have what its receipt says: the rules, a name up to it or one of its first ${actions} actions was changed.`;
    }
  }
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
