import { z } from 'zod';
import { EnvironmentError } from '../protocol/definition.ts';

/** Scripts with letters that look like those of one another. */
const SCRIPTS = [/\p{Script=Latin}/u, /\p{Script=Greek}/u, /\p{Script=Cyrillic}/u];
const EXPECTED =
  'Expected a name of 1 to 60 letters, digits, signs and single spaces, without control or invisible characters or styled letters, and with letters of one alphabet';

/** A name that others see: it is printed as it is, and shows what it holds. */
export const publicName = z
  .string()
  .trim()
  .min(1)
  .max(60)
  .refine(
    (name) =>
      /^[\p{L}\p{M}\p{N}\p{P}\p{S}]+(?: [\p{L}\p{M}\p{N}\p{P}\p{S}]+)*$/u.test(name) &&
      name === name.normalize('NFKC') &&
      SCRIPTS.filter((script) => script.test(name)).length <= 1,
    EXPECTED,
  );

/** @throws EnvironmentError `INVALID_NAME` */
export function readName(text: string): string {
  const reading = publicName.safeParse(text);
  if (reading.success) return reading.data;
  throw new EnvironmentError('INVALID_NAME', `${EXPECTED}.`);
}

/** Letters and digits, each before the Latin letter that it is taken for; a choice from Unicode's confusables.txt. */
const LOOK_ALIKES = 'аaвbеeкkмmнhоoрpсcтtуyхxіlїlјjѕsԁdԛqԝwһhοoαaβbεeηnιlκkνvρpτtυuχxγyμuωw0o1lil|lɑaıl';
const LATIN = new Map(Array.from(LOOK_ALIKES.matchAll(/(.)(.)/gu), ([, letter, latin]) => [letter, latin]));

/** What is left of a name to tell it from others by: names with the same one look alike. */
export function skeletonOf(name: string): string {
  const letters =
    name
      .toLowerCase()
      .normalize('NFKD')
      .replace(/[^\p{L}\p{N}|]/gu, '') || name;
  return Array.from(letters, (letter) => LATIN.get(letter) ?? letter)
    .join('')
    .replaceAll('rn', 'm')
    .replaceAll('vv', 'w');
}
