import { describe, expect, it } from 'vitest';
import { load, problemsIn, shortProblemsIn } from './test-support.ts';

/** Removes the indentation of the test. */
const toml = ({ raw: [text = ''] }: TemplateStringsArray): string => text.replace(/^ {6}/gm, '').trim();

describe('an invalid case file', () => {
  it('is reported with positions, messages and hints', () => {
    const text = toml`
      fidelty = "tape"
      [multi]
      steps = [
        { name = "init", command = "init", stdn = "y" },
        { name = "init", command = "shell" },
      ]
      [[triggers]]
      step = "inti"
      label = "clock.now"
      action = "exit"
    `;
    expect(problemsIn(text)).toMatchInlineSnapshot(`
      "
      small.toml:1:1: unknown key \`fidelty\`
         1 | fidelty = "tape"
           | ^^^^^^^
        hint: did you mean \`fidelity\`?

      small.toml:4:38: unknown key \`stdn\`
         4 |   { name = "init", command = "init", stdn = "y" },
           |                                      ^^^^
        hint: did you mean \`stdin\`?

      small.toml:5:3: the command \`shell\` needs a \`script\`
         5 |   { name = "init", command = "shell" },
           |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: define the script in [scripts], and set \`script\` to its name

      small.toml:5:12: the name \`init\` is already used
         5 |   { name = "init", command = "shell" },
           |            ^^^^^^

      small.toml:8:8: the case has no command named \`inti\`
         8 | step = "inti"
           |        ^^^^^^
        hint: did you mean "init"?
      "
    `);
  });

  it('is reported with the position of a TOML syntax error', () => {
    const text = toml`
      [multi]
      steps = [
        { name = "a", command = run },
      ]
    `;
    expect(problemsIn(text)).toMatchInlineSnapshot(`
      "
      small.toml:3:27: invalid TOML: invalid value
         3 |   { name = "a", command = run },
           |                           ^
        hint: put strings in quotes
      "
    `);
  });
});

describe('the TOML syntax check', () => {
  it('reports an unclosed string', () => {
    const text = 'description = "open\n';
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"1:20 [] invalid TOML: control characters are not allowed in strings (close the quote; for a multi-line string use """ or ''')"`,
    );
  });

  it('reports an unclosed list', () => {
    const text = toml`
      [multi]
      steps = [
        { name = "a", command = "run" }
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"3:34 [] invalid TOML: expected comma or end of structure (close the list or inline table, or add the missing comma)"`,
    );
  });

  it('reports a duplicate table', () => {
    const text = toml`
      [run]
      args = []
      [run]
      args = []
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"3:2 [r] invalid TOML: trying to redefine an already defined table or value (a key or [table] can be defined only once; merge the two)"`,
    );
  });

  it('reports a duplicate key', () => {
    const text = toml`
      [run]
      args = []
      args = []
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"3:1 [a] invalid TOML: trying to redefine an already defined table or value (a key or [table] can be defined only once; merge the two)"`,
    );
  });

  it('reports a key that needs quotes', () => {
    const text = toml`
      [files]
      src/a.txt = "x"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"2:4 [/] invalid TOML: illegal character in key (put keys with characters other than letters, digits, - and _ in quotes)"`,
    );
  });

  it('finds the position in a file with CRLF line endings', () => {
    const text = 'model = "x"\r\n[run]\r\nargs = yes\r\n';
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"3:8 [y] invalid TOML: invalid value (put strings in quotes)"`,
    );
  });
});

describe('the check of `[multi]`, `[run]` and `[worker_test]`', () => {
  it('reports an empty file', () => {
    const text = '';
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"1:1 [] the case has no commands (add [run] for a single command, [multi] with \`steps\` for several, or [worker_test])"`,
    );
  });

  it('reports a case with files but no commands', () => {
    const text = toml`
      [files]
      "a.txt" = "a"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"1:1 [[] the case has no commands (add [run] for a single command, [multi] with \`steps\` for several, or [worker_test])"`,
    );
  });

  it('reports two forms', () => {
    const text = toml`
      [run]
      args = []
      [multi]
      steps = [{ name = "a", command = "run" }]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"3:2 [multi] a case cannot have both [run] and [multi] (move [multi] into a separate case)"`,
    );
  });

  it('reports the second and the third form', () => {
    const text = toml`
      [worker_test]
      num_workers = 1
      workers = [{ name = "a", sessions = [] }]
      [run]
      [multi]
      steps = [{ name = "b", command = "run" }]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      4:2 [run] a case cannot have both [worker_test] and [run] (move [run] into a separate case)
      5:2 [multi] a case cannot have both [worker_test] and [multi] (move [multi] into a separate case)
      "
    `);
  });

  it('suggests the name of a misspelled form', () => {
    const text = toml`
      [mutli]
      steps = []
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"1:2 [mutli] unknown key \`mutli\` (did you mean \`multi\`?)"`,
    );
  });

  it('reports missing `steps`', () => {
    const text = '[multi]\n';
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`"1:1 [[multi]] \`multi\` needs \`steps\`"`);
  });

  it('reports an empty list of `steps`', () => {
    const text = toml`
      [multi]
      steps = []
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`"2:9 [[]] \`multi.steps\` must not be empty"`);
  });

  it('reports `steps` that is a table', () => {
    const text = toml`
      [multi.steps]
      name = "a"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"1:1 [[multi.steps]] \`multi.steps\` must be a list, not a table (write [[multi.steps]])"`,
    );
  });

  it('reports `steps` at the top of the file', () => {
    const text = toml`
      [[steps]]
      name = "a"
      command = "run"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"1:3 [steps] unknown key \`steps\` (write [[multi.steps]])"`,
    );
  });

  it('reports an entry of `steps` that is a string', () => {
    const text = toml`
      [multi]
      steps = ["init", { name = "a", command = "run" }]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"2:10 ["init"] an entry of \`steps\` must be a table, not "init""`,
    );
  });

  it('reports a form that is a string', () => {
    const text = 'run = "fix"\n';
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`"1:7 ["fix"] \`run\` must be a table, not "fix""`);
  });
});

describe('the check for unknown keys', () => {
  it('reports unknown keys at the top of the file', () => {
    const text = toml`
      name = "x"
      overrides = {}
      [run]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      1:1 [name] unknown key \`name\` (remove it; a case is named after its file)
      2:1 [overrides] unknown key \`overrides\` (known keys: description, recorded_by, show_thinking, model, fidelity, live, env, timeline, files, definitions, scripts, multi, run, worker_test, triggers, claims, base, invariants, explore)
      "
    `);
  });

  it('reports an `[explore]` table that asks for nothing', () => {
    const problemsOf = (line: string) => shortProblemsIn(`[run]\nargs = ["a"]\n[explore]\n${line}\n`);
    expect([
      problemsOf('for = "0s"'),
      problemsOf('schedules = 0'),
      problemsOf('policies = []'),
    ]).toMatchInlineSnapshot(`
      [
        "4:7 ["0s"] \`explore.for\` must be a duration, not "0s" (write "30s", "1m30s" or "250ms", for example)",
        "4:13 [0] \`explore.schedules\` must be an integer of at least 1, not \`0\`",
        "4:1 [policies] unknown key \`policies\` (known keys: policy, schedules, for, seed, crashes, faults, any_outcome)",
      ]
    `);
  });

  it('reports unknown keys of a command', () => {
    const text = toml`
      [[multi.steps]]
      name = "a"
      cmd = "run"
      group = "x"
      timeuot = 1
      zzz = 1
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      1:1 [[[multi.steps]]] an entry of \`steps\` needs \`command\`
      3:1 [cmd] unknown key \`cmd\` (write \`command\`)
      4:1 [group] unknown key \`group\` (write \`concurrent_group\`)
      5:1 [timeuot] unknown key \`timeuot\` (did you mean \`timeout\`?)
      6:1 [zzz] unknown key \`zzz\` (known keys: name, command, concurrent_group, args, stdin, env, expect, timeout, kill_after, script)
      "
    `);
  });

  it('reports unknown keys of `[run]`', () => {
    const text = toml`
      [run]
      concurrent_group = "x"
      workflow = "fix"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      2:1 [concurrent_group] unknown key \`concurrent_group\` ([run] is a single command; write [[multi.steps]] for several)
      3:1 [workflow] unknown key \`workflow\` (pass the workflow as the first of \`args\`)
      "
    `);
  });

  it('reports unknown keys of `expect`', () => {
    const text = toml`
      [run]
      expect = { exit_code = 1, fles = {}, stdout = "x" }
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      2:12 [exit_code] unknown key \`exit_code\` (write \`exit\`)
      2:27 [fles] unknown key \`fles\` (did you mean \`files\`?)
      2:38 [stdout] unknown key \`stdout\` (write \`output\`)
      "
    `);
  });

  it('reports keys of the whole case below a table', () => {
    const text = toml`
      [multi]
      steps = [{ name = "a", command = "run", env = { A = "1" } }]
      fidelity = "tape"
      env = { A = "1" }
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      3:1 [fidelity] unknown key \`fidelity\` (\`fidelity\` applies to the whole case; move it to the top of the file, before the first [table])
      4:1 [env] unknown key \`env\` (\`env\` applies to the whole case; move it to the top of the file, before the first [table])
      "
    `);
  });

  it('reports unknown dotted and quoted keys', () => {
    const text = toml`
      "sho thinking" = true
      run.expect.ext = 1
      run."arg s" = []
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      1:1 ["sho thinking"] unknown key \`sho thinking\` (did you mean \`show_thinking\`?)
      2:12 [ext] unknown key \`ext\` (did you mean \`exit\`?)
      3:5 ["arg s"] unknown key \`arg s\` (did you mean \`args\`?)
      "
    `);
  });

  it('reports unknown keys of nested inline tables', () => {
    const text = toml`
      [[worker_test.workers]]
      name = "a"
      sessions = [
        { role = "x", vcr = "y" }, # { tape = 1 }
        { role = "x", vcr = "y", tape = "z" },
      ]
      [worker_test.nested]
      x = 1
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      1:3 [worker_test] \`worker_test\` needs \`num_workers\`
      5:28 [tape] unknown key \`tape\` (known keys: role, vcr)
      7:14 [nested] unknown key \`nested\` (known keys: num_workers, command, workflow, args, env, timeout, workers)
      "
    `);
  });

  it('reports keys with the names of object methods', () => {
    const text = toml`
      __proto__ = 1
      constructor = {}
      [run]
      toString = 1
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      1:1 [__proto__] unknown key \`__proto__\` (known keys: description, recorded_by, show_thinking, model, fidelity, live, env, timeline, files, definitions, scripts, multi, run, worker_test, triggers, claims, base, invariants, explore)
      2:1 [constructor] unknown key \`constructor\` (known keys: description, recorded_by, show_thinking, model, fidelity, live, env, timeline, files, definitions, scripts, multi, run, worker_test, triggers, claims, base, invariants, explore)
      4:1 [toString] unknown key \`toString\` (known keys: name, command, args, stdin, env, expect, timeout, kill_after, script)
      "
    `);
  });
});

describe('the check of a command', () => {
  it('reports a missing name and command', () => {
    const text = toml`
      [multi]
      steps = [
        {},
      ]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      3:3 [{}] an entry of \`steps\` needs \`name\`
      3:3 [{}] an entry of \`steps\` needs \`command\`
      "
    `);
  });

  it('reports invalid names', () => {
    const text = toml`
      [multi]
      steps = [
        { name = "a b", command = "run" },
        { name = "", command = "run" },
        { name = 1, command = "run" },
        { name = "a/../b", command = "" },
        { name = "result", command = "run" },
      ]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      3:12 ["a b"] \`name\` must consist of letters, digits, - and _, not "a b"
      4:12 [""] \`name\` must not be empty
      5:12 [1] \`name\` must be a string, not \`1\` (put it in quotes)
      6:12 ["a/../b"] \`name\` must consist of letters, digits, - and _, not "a/../b"
      6:32 [""] \`command\` must not be empty
      7:12 ["result"] \`result\` is reserved for a section of the snapshot (choose another name)
      "
    `);
  });

  it('reports duplicate names', () => {
    const text = toml`
      [multi]
      steps = [
        { name = "a", command = "run" },
        { name = "b", command = "run" },
        { name = "a", command = "resume" },
        { name = "B", command = "resume" },
        { name = "C", command = "resume" },
        { name = "c", command = "resume" },
      ]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      5:12 ["a"] the name \`a\` is already used
      6:12 ["B"] the names \`B\` and \`b\` differ only in case
      8:12 ["c"] the names \`c\` and \`C\` differ only in case
      "
    `);
  });

  it('reports invalid arguments', () => {
    const text = toml`
      [multi]
      steps = [
        { name = "a", command = "run", args = ["x", 1, true] },
        { name = "b", command = "run", args = "it's" },
        { name = "c", command = "run", args = 1979-05-27 },
        { name = "d", command = "run", args = { x = 1 } },
      ]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      3:47 [1] \`args[1]\` must be a string, not \`1\` (put it in quotes)
      3:50 [true] \`args[2]\` must be a string, not \`true\` (put it in quotes)
      4:41 ["it's"] \`args\` has an unclosed quote or a trailing backslash (close the quote, or write a list)
      5:41 [1979-05-27] \`args\` must be a list or a string, not a date
      6:41 [{ x = 1 }] \`args\` must be a list or a string, not a table
      "
    `);
  });

  it('reports invalid environment variables', () => {
    const text = toml`
      [run]
      stdin = 1
      env = { A = 1, "B=C" = "x", "" = "y", D = { E = "z" } }
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      2:9 [1] \`stdin\` must be a string, not \`1\` (put it in quotes)
      3:13 [1] \`env.A\` must be a string, not \`1\` (put it in quotes)
      3:16 ["B=C"] invalid variable name \`B=C\`
      3:29 [""] invalid variable name \`\`
      3:43 [{ E = "z" }] \`env.D\` must be a string, not a table
      "
    `);
  });

  it('reports invalid durations', () => {
    const text = toml`
      [multi]
      steps = [
        { name = "a", command = "run", timeout = "soon" },
        { name = "b", command = "run", timeout = 0 },
        { name = "c", command = "run", timeout = "0s" },
        { name = "d", command = "run", timeout = -1.5 },
        { name = "e", command = "run", timeout = true },
        { name = "f", command = "run", timeout = nan },
      ]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      3:44 ["soon"] \`timeout\` must be a duration, not "soon" (write "30s", "1m30s" or "250ms", for example)
      4:44 [0] \`timeout\` must be a number above 0, not \`0\`
      5:44 ["0s"] \`timeout\` must be a duration, not "0s" (write "30s", "1m30s" or "250ms", for example)
      6:44 [-1.5] \`timeout\` must be a number above 0, not \`-1.5\`
      7:44 [true] \`timeout\` must be a string or a number, not \`true\`
      8:44 [nan] \`timeout\` must be a number above 0, not \`NaN\`
      "
    `);
  });

  it('asks for a `name` if the command is not a valid one', () => {
    const text = toml`
      [run]
      command = "my command"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"1:1 [[run]] the command needs a \`name\`, because \`my command\` is not a valid one (add a \`name\` of letters, digits, - and _)"`,
    );
  });

  it('reports an empty group name', () => {
    const text = toml`
      [multi]
      steps = [{ name = "a", command = "run", concurrent_group = "" }]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`"2:60 [""] \`concurrent_group\` must not be empty"`);
  });
});

describe('the check of a shell command', () => {
  it('reports a missing script', () => {
    const text = toml`
      [multi]
      steps = [{ name = "a", command = "shell" }]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"2:10 [{ name = "a", command = "shell" }] the command \`shell\` needs a \`script\` (define the script in [scripts], and set \`script\` to its name)"`,
    );
  });

  it('reports an unknown script', () => {
    const text = toml`
      [multi]
      steps = [{ name = "a", command = "shell", script = "setup.hs" }]
      [scripts]
      "setup.sh" = "ls"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"2:52 ["setup.hs"] [scripts] has no script named \`setup.hs\` (did you mean "setup.sh"?)"`,
    );
  });

  it('reports a script that is not a string', () => {
    const text = toml`
      [multi]
      steps = [{ name = "a", command = "shell", script = 1 }]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"2:52 [1] \`script\` must be a string, not \`1\` (put it in quotes)"`,
    );
  });

  it('reports a script of another command', () => {
    const text = toml`
      [multi]
      steps = [{ name = "a", command = "run", script = "x.sh" }]
      [scripts]
      "x.sh" = "ls"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"2:41 [script] \`script\` is only allowed with the command \`shell\` (write command = "shell")"`,
    );
  });

  it('reports `kill_after`', () => {
    const text = toml`
      [multi]
      steps = [{ name = "a", command = "shell", script = "x.sh", kill_after = "store.append" }]
      [scripts]
      "x.sh" = "ls"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"2:60 [kill_after] \`kill_after\` is not supported by \`shell\` commands, which have no effects (exit in the script instead)"`,
    );
  });

  it('reports an unquoted script name', () => {
    const text = toml`
      [multi]
      steps = [{ name = "a", command = "shell", script = "x.sh" }]
      [scripts]
      x.sh = "ls"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      2:52 ["x.sh"] [scripts] has no script named \`x.sh\`
      4:1 [x] \`scripts.x\` must be a string, not a table (put the name in quotes: "x.sh" = ...)
      "
    `);
  });

  it('reports a script name that is a path', () => {
    const text = toml`
      [run]
      [scripts]
      "a/b.sh" = "ls"
      ".." = "ls"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      3:1 ["a/b.sh"] invalid script name \`a/b.sh\` (use letters, digits, \`.\`, - and _)
      4:1 [".."] invalid script name \`..\` (use letters, digits, \`.\`, - and _)
      "
    `);
  });
});

describe('the check of `expect`', () => {
  it('reports invalid exit codes', () => {
    const text = toml`
      [multi]
      steps = [
        { name = "a", command = "run", expect = { exit = "0" } },
        { name = "b", command = "run", expect = { exit = 256 } },
        { name = "c", command = "run", expect = { exit = 0.5 } },
        { name = "d", command = "run", expect = 0 },
      ]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      3:52 ["0"] \`expect.exit\` must be a number, not "0"
      4:52 [256] \`expect.exit\` must be an integer from 0 to 255, not \`256\`
      5:52 [0.5] \`expect.exit\` must be an integer from 0 to 255, not \`0.5\`
      6:43 [0] \`expect\` must be a table, not \`0\`
      "
    `);
  });

  it('reports invalid expected files', () => {
    const text = toml`
      [run.expect.files]
      "a" = 1
      "b" = {}
      "c" = { contains = "x", absent = true }
      "d" = { absent = false }
      "e" = { contains = "" }
      "f" = { contians = "x" }
      "/g" = ""
      "../h" = ""
      README.md = "x"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      2:7 [1] \`expect.files.a\` must be a string or a table, not \`1\`
      3:7 [{}] \`expect.files.b\` needs either \`contains\` or \`absent\` (write "the whole content", { contains = "a part" } or { absent = true })
      4:7 [{ contains = "x", absent = true }] \`expect.files.c\` needs either \`contains\` or \`absent\` (write "the whole content", { contains = "a part" } or { absent = true })
      5:18 [false] \`expect.files.d.absent\` must be true (remove the entry to leave this file unchecked)
      6:20 [""] \`expect.files.e.contains\` must not be empty
      7:9 [contians] unknown key \`contians\` (did you mean \`contains\`?)
      8:1 ["/g"] the path \`/g\` must be relative to the test repository
      9:1 ["../h"] the path \`../h\` must stay inside the test repository
      10:1 [README] \`expect.files.README\` needs either \`contains\` or \`absent\` (put the name in quotes: "README.md" = ...)
      "
    `);
  });

  it('reports invalid `main`, `output` and `not_output`', () => {
    const text = toml`
      [run.expect]
      main = "one"
      output = ["/a(/", "", "/ok/i", "/(?=a)b/"]
      not_output = [1]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      2:8 ["one"] \`expect.main\` must be a list, not "one"
      3:11 ["/a(/"] \`expect.output[0]\` is not a valid regular expression: Unterminated group (to search for literal text, leave out the slashes)
      3:19 [""] \`expect.output[1]\` must not be empty
      3:32 ["/(?=a)b/"] \`expect.output[3]\` uses look-around, \`(?=\` at character 1, which cannot be matched in linear time (write what the text must contain instead)
      4:15 [1] \`expect.not_output[0]\` must be a string, not \`1\` (put it in quotes)
      "
    `);
  });
});

describe('the check of `kill_after`', () => {
  it('reports an event that is given as an effect', () => {
    const text = toml`
      [run]
      kill_after = "step.completed"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"2:14 ["step.completed"] \`kill_after\` must name an effect, but \`step.completed\` is an event (write { event = "step.completed" })"`,
    );
  });

  it('reports an unknown event', () => {
    const text = toml`
      [run]
      kill_after = { event = "step.complete" }
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"2:24 ["step.complete"] \`kill_after.event\` must be a type of event, not \`step.complete\` (did you mean "step.completed"?)"`,
    );
  });

  it('reports missing, contradictory and invalid values', () => {
    const text = toml`
      [multi]
      steps = [
        { name = "a", command = "run", kill_after = {} },
        { name = "b", command = "run", kill_after = { effect = "x", event = "step.completed" } },
        { name = "c", command = "run", kill_after = { effect = "x", step = "build" } },
        { name = "d", command = "run", kill_after = { effect = "x", nth = 0 } },
        { name = "e", command = "run", kill_after = 3 },
        { name = "f", command = "run", kill_after = "" },
      ]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      3:47 [{}] \`kill_after\` needs either \`effect\` or \`event\`
      4:47 [{ effect = "x", event = "step.completed" }] \`kill_after\` needs either \`effect\` or \`event\`
      5:63 [step] \`step\` is only allowed with \`event\`
      6:69 [0] \`kill_after.nth\` must be an integer of at least 1, not \`0\`
      7:47 [3] \`kill_after\` must be a string or a table, not \`3\`
      8:47 [""] \`kill_after\` must not be empty
      "
    `);
  });
});

it('reports only the misspelled key of a table that needs one of several keys', () => {
  expect(shortProblemsIn('[run]\nkill_after = { efect = "x" }\n')).toMatchInlineSnapshot(
    `"2:16 [efect] unknown key \`efect\` (did you mean \`effect\`?)"`,
  );
  expect(
    shortProblemsIn('[run]\n[[triggers]]\nstep = "run"\nlabel = "x"\naction = { inptu = "y" }\n'),
  ).toMatchInlineSnapshot(`"5:12 [inptu] unknown key \`inptu\` (did you mean \`input\`?)"`);
  expect(shortProblemsIn('[run]\n[[invariants]]\nname = "a"\nrn = "x"\n')).toMatchInlineSnapshot(
    `"4:1 [rn] unknown key \`rn\` (did you mean \`run\`?)"`,
  );
});

describe('the check of triggers', () => {
  it('reports an unknown command', () => {
    const text = toml`
      [run]
      [[triggers]]
      step = "rum"
      label = "x"
      action = "exit"
      [[triggers]]
      step = "something"
      label = "x"
      action = "exit"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      3:8 ["rum"] the case has no command named \`rum\` (did you mean "run"?)
      7:8 ["something"] the case has no command named \`something\` (commands of the case: run)
      "
    `);
  });

  it('reports a trigger of a shell command', () => {
    const text = toml`
      [multi]
      steps = [{ name = "a", command = "shell", script = "x" }]
      [scripts]
      x = "ls"
      [[triggers]]
      step = "a"
      label = "x"
      action = "exit"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"6:8 ["a"] \`a\` is a shell command, and has no effects that could fire a trigger"`,
    );
  });

  it('reports missing keys', () => {
    const text = toml`
      [run]
      [[triggers]]
      [[triggers]]
      step = "run"
      label = ""
      action = "input"
      [[triggers]]
      step = "run"
      label = "x"
      action = {}
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      2:1 [[[triggers]]] a trigger needs \`step\`
      2:1 [[[triggers]]] a trigger needs \`label\`
      2:1 [[[triggers]]] a trigger needs \`action\`
      5:9 [""] \`label\` must not be empty
      6:10 ["input"] \`action\` "input" needs \`input\` (write action = { input = "y" })
      10:10 [{}] \`action\` needs exactly one of \`exit\`, \`input\`, \`signal\`, \`advance_clock\` and \`move_main\`
      "
    `);
  });

  it('reports contradictory keys', () => {
    const text = toml`
      [run]
      [[triggers]]
      step = "run"
      label = "x"
      action = "exit"
      input = "y"
      [[triggers]]
      step = "run"
      label = "x"
      action = { input = "y", signal = "SIGINT" }
      [[triggers]]
      step = "run"
      label = "x"
      action = { input = "y" }
      signal = "SIGINT"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      6:1 [input] \`input\` is not allowed with this action
      10:10 [{ input = "y", signal = "SIGINT" }] \`action\` needs exactly one of \`exit\`, \`input\`, \`signal\`, \`advance_clock\` and \`move_main\`
      15:1 [signal] \`signal\` is not allowed with this action
      "
    `);
  });

  it('reports invalid values', () => {
    const text = toml`
      [run]
      [[triggers]]
      step = "run"
      label = "x"
      nth = 0
      fields = { at = 1979-05-27 }
      action = "exti"
      [[triggers]]
      step = "unknown"
      label = "x"
      fields = "x"
      action = { signal = "SIGIN" }
      [[triggers]]
      step = "run"
      label = "x"
      action = { advance_clock = "later" }
      [[triggers]]
      step = "run"
      label = "x"
      action = { exit = false }
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      5:7 [0] \`nth\` must be an integer of at least 1, not \`0\`
      6:17 [1979-05-27] \`fields.at\` must be a string, not a date (put it in quotes)
      7:10 ["exti"] \`action\` must be "exit", "input", "signal", "advance_clock" or "move_main", not "exti" (did you mean "exit"?)
      9:8 ["unknown"] the case has no command named \`unknown\` (commands of the case: run)
      11:10 ["x"] \`fields\` must be a table, not "x"
      12:21 ["SIGIN"] \`action.signal\` must be "SIGINT", "SIGTERM" or "SIGHUP", not "SIGIN" (did you mean "SIGINT"?)
      16:28 ["later"] \`action.advance_clock\` must be a duration, not "later" (write "30s", "1m30s" or "250ms", for example)
      20:19 [false] \`action.exit\` must be true
      "
    `);
  });

  it('reports `triggers` that is a table', () => {
    const text = toml`
      [run]
      [triggers]
      step = "run"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"2:1 [[triggers]] \`triggers\` must be a list, not a table (write [[triggers]])"`,
    );
  });
});

describe('the check of `[worker_test]`', () => {
  it('reports a number of workers that differs from `num_workers`', () => {
    const text = toml`
      [worker_test]
      num_workers = 3
      [[worker_test.workers]]
      name = "a"
      sessions = []
      [[worker_test.workers]]
      name = "b"
      sessions = []
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"2:15 [3] \`worker_test.num_workers\` is 3, but the case lists 2 workers (add a [[worker_test.workers]] table per worker)"`,
    );
  });

  it('reports missing keys', () => {
    const text = toml`
      [worker_test]
      [[worker_test.workers]]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      1:1 [[worker_test]] \`worker_test\` needs \`num_workers\`
      2:1 [[[worker_test.workers]]] a worker needs \`name\`
      2:1 [[[worker_test.workers]]] a worker needs \`sessions\`
      "
    `);
  });

  it('reports duplicate names', () => {
    const text = toml`
      [worker_test]
      num_workers = 2
      workers = [
        { name = "a", sessions = [] },
        { name = "a", sessions = [] },
      ]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`"5:12 ["a"] the name \`a\` is already used"`);
  });

  it('reports invalid sessions', () => {
    const text = toml`
      [worker_test]
      num_workers = 1
      workers = [
        { name = "a", sessions = [{ role = "x" }, { vcr = "y" }, "z", { role = "", vcr = 1 }] },
      ]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      4:29 [{ role = "x" }] \`sessions[0]\` needs \`vcr\`
      4:45 [{ vcr = "y" }] \`sessions[1]\` needs \`role\`
      4:60 ["z"] \`sessions[2]\` must be a table, not "z"
      4:74 [""] \`sessions[3].role\` must not be empty
      4:84 [1] \`sessions[3].vcr\` must be a string, not \`1\` (put it in quotes)
      "
    `);
  });

  it('reports a command of a single worker', () => {
    const text = toml`
      [worker_test]
      num_workers = 1
      workflow = "fix"
      workers = [{ name = "a", sessions = [], command = "run" }]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      3:1 [workflow] \`workflow\` is only allowed with the command \`run\` (write command = "run")
      4:41 [command] unknown key \`command\` (move \`command\` to [worker_test])
      "
    `);
  });

  it('reports the command `shell`', () => {
    const text = toml`
      [worker_test]
      num_workers = 0
      command = "shell"
      workers = []
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      2:15 [0] \`worker_test.num_workers\` must be an integer of at least 1, not \`0\`
      3:11 ["shell"] \`worker_test.command\` must be a Reprise command (a shell script uses no sessions; use [multi] for it)
      4:11 [[]] \`worker_test.workers\` must not be empty
      "
    `);
  });
});

describe('the check of the whole case', () => {
  it('reports unknown and invalid values', () => {
    const text = toml`
      fidelity = "tapes"
      live = ["verfy", 1]
      show_thinking = "yes"
      timeline = 1
      model = ""
      description = 3
      [run]
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      1:12 ["tapes"] \`fidelity\` must be "sessions" or "tape", not "tapes" (did you mean "tape"?)
      2:9 ["verfy"] \`live[0]\` must be "run", "setup", "checks", "gates", "rank", "verify" or "functions", not "verfy" (did you mean "verify"?)
      2:18 [1] \`live[1]\` must be "run", "setup", "checks", "gates", "rank", "verify" or "functions", not \`1\`
      3:17 ["yes"] \`show_thinking\` must be true or false, not "yes"
      4:12 [1] \`timeline\` must be true or false, not \`1\`
      5:9 [""] \`model\` must not be empty
      6:15 [3] \`description\` must be a string, not \`3\` (put it in quotes)
      "
    `);
  });

  it('reports invalid paths', () => {
    const text =
      '[run]\n[files]\n"/etc/passwd" = ""\n"a/../../b" = ""\n".git/config" = ""\n"sub/.GIT/hooks/x" = ""\n"C:/x" = ""\n"a\\\\b" = ""\n"" = ""\n"x/" = ""\n"./y" = ""\n"~/z" = ""\n".gitignore" = ""\n';
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      3:1 ["/etc/passwd"] the path \`/etc/passwd\` must be relative to the test repository
      4:1 ["a/../../b"] the path \`a/../../b\` must stay inside the test repository
      5:1 [".git/config"] the path \`.git/config\` must not be inside .git
      6:1 ["sub/.GIT/hooks/x"] the path \`sub/.GIT/hooks/x\` must not be inside .git
      7:1 ["C:/x"] the path \`C:/x\` must be relative to the test repository
      8:1 ["a\\\\b"] the path \`a\\b\` must separate folders with /
      9:1 [""] the path \`\` must name a file, without empty or \`.\` parts
      10:1 ["x/"] the path \`x/\` must name a file, without empty or \`.\` parts
      11:1 ["./y"] the path \`./y\` must name a file, without empty or \`.\` parts
      12:1 ["~/z"] the path \`~/z\` must be relative to the test repository
      "
    `);
  });

  it('reports a file that is also used as a folder', () => {
    const text = toml`
      [run]
      [files]
      "a" = ""
      "a/b" = ""
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"4:1 ["a/b"] \`a\` is a file, so it cannot contain \`a/b\`"`,
    );
  });

  it('reports an unquoted path', () => {
    const text = toml`
      [run]
      [files]
      README.md = "x"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"3:1 [README] \`files.README\` must be a string, not a table (put the name in quotes: "README.md" = ...)"`,
    );
  });

  it('reports content that is not a string', () => {
    const text = toml`
      [run]
      [files]
      "a" = 1
      "b" = ["x"]
      "c" = {}
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      3:7 [1] \`files.a\` must be a string, not \`1\` (put it in quotes)
      4:7 [["x"]] \`files.b\` must be a string, not a list
      5:7 [{}] \`files.c\` must be a string, not a table
      "
    `);
  });

  it('reports a key of the case among the files', () => {
    const text = toml`
      [run]
      [files]
      "a.txt" = "x"
      model = "opus"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(
      `"4:1 [model] \`model\` is inside a table here (move it to the top of the file, before the first [table]; if it is a file or script name, put it in quotes: "model")"`,
    );
  });

  it('reports an invalid `[base]`', () => {
    const text = toml`
      [run]
      [base]
      commit = "abc"
      branch = ""
      pack = "../x"
      shallow = "y"
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      3:10 ["abc"] \`base.commit\` must be a full commit id, not "abc"
      4:10 [""] \`base.branch\` must not be empty
      5:8 ["../x"] \`base.pack\` must stay inside the folder of the case
      6:11 ["y"] \`base.shallow\` must be a list, not "y"
      "
    `);
  });

  it('reports invalid invariants', () => {
    const text = toml`
      [run]
      [[invariants]]
      name = "a"
      [[invariants]]
      run = "x"
      command = "y"
      [[invariants]]
      name = "b"
      command = []
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      2:1 [[[invariants]]] an invariant needs either \`run\` (a script) or \`command\` (a program with its arguments)
      4:1 [[[invariants]]] an invariant needs \`name\`
      4:1 [[[invariants]]] an invariant needs either \`run\` (a script) or \`command\` (a program with its arguments)
      9:11 [[]] \`command\` must not be empty
      "
    `);
  });

  it('reports invalid `[explore]` settings', () => {
    const text = toml`
      [run]
      [explore]
      policy = 1
      schedules = 0
      for = "x"
      seed = -1
      crashes = "y"
      faults = "z"
      runs = 3
    `;
    expect(shortProblemsIn(text)).toMatchInlineSnapshot(`
      "
      3:10 [1] \`explore.policy\` must be "auto", "dpor", "urw", "pct" or "random", not \`1\`
      4:13 [0] \`explore.schedules\` must be an integer of at least 1, not \`0\`
      5:7 ["x"] \`explore.for\` must be a duration, not "x" (write "30s", "1m30s" or "250ms", for example)
      6:8 [-1] \`explore.seed\` must be an integer of at least 0, not \`-1\`
      7:11 ["y"] \`explore.crashes\` must be true or false, not "y"
      8:10 ["z"] \`explore.faults\` must be a list, not "z"
      9:1 [runs] unknown key \`runs\` (known keys: policy, schedules, for, seed, crashes, faults, any_outcome)
      "
    `);
  });
});

it('accepts a quoted file name that is also a key of the case', () => {
  expect(load('[run]\n[files]\n"model" = "x"\n"README" = ""\nMakefile = "all:"\n').files).toEqual({
    model: 'x',
    README: '',
    Makefile: 'all:',
  });
});
