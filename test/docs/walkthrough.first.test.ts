import { followPages } from './follow-pages.ts';
import { firstPages } from './walkthrough-pages.ts';

followPages(firstPages);
