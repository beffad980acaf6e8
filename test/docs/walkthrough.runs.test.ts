import { followPages } from './follow-pages.ts';
import { runPages } from './walkthrough-pages.ts';

followPages(runPages);
