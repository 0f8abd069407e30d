import { serverPages } from '../../../.vitepress/pages.ts';

/** A page for each model on each GPU, which `npm run docs:servers` generates. */
export default { paths: serverPages };
