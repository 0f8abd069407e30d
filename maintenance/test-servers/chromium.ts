import { type Browser, chromium } from 'playwright-core';

/**
 * Pages of suggestions that Chromium would load for the address bar of each new window, which take a third of the processor time
 * of a test, and the features that Playwright turns off: the last list counts.
 */
const FEATURES_OFF = `
  WebUIOmniboxPopup WebUIOmniboxAimPopup AimEnabled PreconnectToSearch OptimizationHints
  HttpsUpgrades HttpsFirstBalancedModeAutoEnable NetworkTimeServiceQuerying TcpPortRandomizationWin
  LensOverlay MediaRouter PaintHolding ThirdPartyStoragePartitioning AvoidCorsURLLoaderRestartOnRedirect
  AvoidUnnecessaryBeforeUnloadCheckSync DestroyProfileOnBrowserClose
`
  .trim()
  .split(/\s+/);

/** Starts the Chromium that `SERVEGYM_CHROMIUM` names. */
export function launchChromium(): Promise<Browser> {
  const executablePath = process.env.SERVEGYM_CHROMIUM;
  if (!executablePath)
    throw new Error('Expected the path of a Chromium in SERVEGYM_CHROMIUM; `npm test` finds one and sets it');
  return chromium.launch({ executablePath, args: [`--disable-features=${FEATURES_OFF}`] });
}
