export { type Database, openDatabase } from './connection.ts';
export { openSqliteStore } from './store.ts';
