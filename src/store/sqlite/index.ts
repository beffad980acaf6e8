export { type Database, openDatabase } from './connection.ts';
export { copyStore, mergeStore, type StoreUser } from './import.ts';
export { openSqliteStore } from './store.ts';
