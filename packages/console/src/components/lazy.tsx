import { useSignal } from '@preact/signals';
import type { ComponentType, JSX } from 'preact';
import { useEffect } from 'preact/hooks';

/** A component whose code is fetched when it is shown for the first time. Until then nothing is shown. */
export function lazy<Props extends object = object>(
  load: () => Promise<ComponentType<Props>>,
): (props: Props) => JSX.Element | null {
  let loaded: ComponentType<Props> | undefined;
  return function Lazy(props) {
    const isReady = useSignal(loaded !== undefined);
    const isBroken = useSignal(false);
    useEffect(() => {
      if (!loaded)
        load().then(
          (component) => {
            loaded = component;
            isReady.value = true;
          },
          () => {
            isBroken.value = true;
          },
        );
    }, [isReady, isBroken]);
    if (isBroken.value)
      return <p class="fine">This part could not be fetched. Reload the page to try again.</p>;
    const Loaded = isReady.value ? loaded : undefined;
    return Loaded ? <Loaded {...props} /> : null;
  };
}
