import { InputError } from '../cli/input-error.ts';

/** Advice on an address that cannot be listened on; other errors come back as they are. */
export function listenError(error: NodeJS.ErrnoException, port: number, host: string): Error {
  switch (error.code) {
    case 'EADDRINUSE':
      return new InputError(
        `Port ${port} is taken by another program. Stop it, or choose another port with --port or PORT, for instance --port ${port === 65535 ? 7860 : port + 1}.`,
        { code: 'ADDRESS_UNUSABLE' },
      );
    case 'EACCES':
      return new InputError(`Port ${port} needs privileges. Choose one above 1023 with --port or PORT.`, {
        code: 'ADDRESS_UNUSABLE',
      });
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return new InputError(
        `\`${host}\` is no address of this machine. Choose one with --host or HOST; 0.0.0.0 is all of them.`,
        { code: 'ADDRESS_UNUSABLE' },
      );
    default:
      return error;
  }
}
