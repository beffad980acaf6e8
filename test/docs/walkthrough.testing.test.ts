import { followPages } from './follow-pages.ts';
import { testingPages } from './walkthrough-pages.ts';

followPages(testingPages);
