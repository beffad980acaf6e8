import { expect, test } from 'vitest';
import { StepTree } from './step-board.ts';

const pathsOf = (tree: StepTree): readonly string[] => tree.steps.map(({ path }) => path);

test('shows the steps of a child workflow inside each copy, and not beside the copies', () => {
  const tree = new StepTree();
  tree.set(['check', 'check/make', 'after', 'after/make']);
  expect(pathsOf(tree)).toEqual(['check', 'check/make', 'after', 'after/make']);
  tree.add(['check:0', 'check:1']);
  tree.add(['check:0/make']);
  expect(pathsOf(tree)).toEqual(['check', 'check:0', 'check:0/make', 'check:1', 'after', 'after/make']);
  expect(tree.get('check')?.children.map(({ path }) => path)).toEqual(['check:0', 'check:1']);
});

test('replaces the pattern inside a copy with nested copies', () => {
  const tree = new StepTree();
  tree.set(['fix', 'fix/try', 'fix/try/run']);
  tree.add(['fix:0']);
  tree.add(['fix:0/try', 'fix:0/try/run']);
  tree.add(['fix:0/try:0']);
  expect(pathsOf(tree)).toEqual(['fix', 'fix:0', 'fix:0/try', 'fix:0/try:0']);
});

test('keeps the copies when a resume sets the definition again', () => {
  const tree = new StepTree();
  tree.set(['check', 'check/make']);
  tree.add(['check:0', 'check:0/make']);
  tree.set(['check', 'check/make', 'new']);
  expect(pathsOf(tree)).toEqual(['check', 'check:0', 'check:0/make', 'new']);
});
