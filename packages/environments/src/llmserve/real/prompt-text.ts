import { RandomStream } from '@servegym/simulator';

/** Characters of a token, roughly, of the English words below with current tokenizers. */
const CHARACTERS_PER_TOKEN = 4;
const WORDS =
  'time year people way day man thing woman life child world school state family student group country problem hand part place case week company system program question work government number night point home water room mother area money story fact month lot right study book eye job word business issue side kind head house service friend father power hour game line end member law car city community name'.split(
    ' ',
  );

/** A prompt of about `tokens` tokens that no other request of the episode begins with. */
export function promptText(seed: number, request: number, tokens: number): string {
  const draws = new RandomStream(seed, `prompt ${request}`);
  const characters = tokens * CHARACTERS_PER_TOKEN;
  let text = '';
  while (text.length < characters) text += `${WORDS[draws.integer(0, WORDS.length - 1)]} `;
  return text.slice(0, Math.max(1, characters)).trimEnd();
}
