import { constants, createContext, Script, SourceTextModule } from 'node:vm';
import { freezeRealm, GUEST, guestPolicy, guestViews, randomNumbers, tameRealm } from './guest.ts';
import { type GuestPolicy, playGuest } from './guest-policy.ts';

/**
 * Evaluates the module of a policy where nothing of this process can be reached: in a fresh realm without clock, chance,
 * imports and code from strings, to which only numbers and strings go. The process has to run with frozen intrinsics, no
 * code from strings and no permissions, should something come through all the same.
 * @throws Error with a sentence for the policy's author
 */
export async function sandboxPolicy(source: string, seed: number): Promise<GuestPolicy> {
  const context = createContext(constants.DONT_CONTEXTIFY as never, {
    codeGeneration: { strings: false, wasm: false },
    microtaskMode: 'afterEvaluate',
  });
  const here = <T>(text: string) => new Script(`(${text})`).runInContext(context) as T;
  // All is made of text there, as an object from here would show the way out.
  const given = here<typeof GUEST>(JSON.stringify(GUEST));
  const random = here<typeof randomNumbers>(String(randomNumbers))(seed);
  const views = here<typeof guestViews>(String(guestViews))(given, random);
  here<typeof tameRealm>(String(tameRealm))();
  here<typeof freezeRealm>(String(freezeRealm))(views.classes);
  const guest = here<typeof guestPolicy>(String(guestPolicy))(given, views);
  const module = new SourceTextModule(source, { context, identifier: 'policy' });
  await module.link(() => {
    throw new Error('the policy imports a module');
  });
  // A promise that nobody settles would hold a waiting host.
  module.evaluate().catch(() => {});
  if (module.status !== 'evaluated') {
    const failed = module.status === 'errored';
    throw new Error(
      failed ? `the module threw: ${messageOf(module.error)}` : 'the module waits for a promise',
    );
  }
  return playGuest(guest, guest.adopt(exportOf(module)), source);
}

/** What a module exports by default; `undefined` where it does not. */
function exportOf({ namespace }: SourceTextModule): unknown {
  try {
    return Object.hasOwn(namespace, 'default')
      ? (namespace as { readonly default: unknown }).default
      : undefined;
  } catch {
    throw new Error('the module waits for a promise');
  }
}

/** What was thrown, as far as it is text by itself: a getter of the policy is not called. */
function messageOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return typeof error === 'string' ? error : typeof error;
  const { value } = Reflect.getOwnPropertyDescriptor(error, 'message') ?? {};
  return typeof value === 'string' ? value.slice(0, 200) : 'an error without a message';
}
