import { installDebianPackages } from './debian.mjs';
import { findProgram, isExecutable } from './programs.mjs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];
const MAC_PATHS = [
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** The path of a Chromium; installed from Debian's packages when there is none. `SERVEGYM_CHROMIUM` overrides it. */
export async function ensureChromium() {
  const chosen = process.env.SERVEGYM_CHROMIUM;
  if (chosen) {
    if (isExecutable(chosen)) return chosen;
    throw new Error(`SERVEGYM_CHROMIUM is \`${chosen}\`, which is not a program. Correct it, or unset it.`);
  }
  const found = findProgram(...NAMES) ?? MAC_PATHS.find(isExecutable);
  if (found) return found;
  await installDebianPackages(['chromium']);
  const installed = findProgram(...NAMES);
  if (!installed) throw new Error('chromium was installed, but no program of that name is on PATH.');
  return installed;
}
