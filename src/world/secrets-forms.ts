/** As short as this, a form could be part of anything. */
const shortest = 6;

/** How a value can look like in a text: plain, inside of JSON, in a URL, in base64, or only one line of it. */
export function formsOf(value: string): readonly string[] {
  const forms = [value, ...linesOf(value)].flatMap(text => [
    text,
    jsonEscaped(text),
    ...urlForms(text),
    ...base64Forms(text),
  ]);
  return [...new Set(forms)].filter(form => form.length >= shortest);
}

export const jsonEscaped = (text: string): string => JSON.stringify(text).slice(1, -1);

/** A private key is often printed with other line breaks than it has. */
const linesOf = (value: string): readonly string[] =>
  value.includes('\n')
    ? value.split(/\r?\n/).filter(line => line.length >= 16 && !line.startsWith('-----'))
    : [];

function urlForms(text: string): readonly string[] {
  const wellFormed = Buffer.from(text).toString();
  const encoded = encodeURIComponent(wellFormed);
  return [
    encoded,
    encoded.replace(/%[0-9A-F]{2}/g, code => code.toLowerCase()),
    encodeURI(wellFormed),
    new URLSearchParams({ '': wellFormed }).toString().slice(1),
  ];
}

/**
 * What the value becomes in the middle of something that is encoded as a whole, such as `user:password`: one text for
 * each of the three places at which it can begin, without the characters at the ends that depend on the neighbours.
 */
function base64Forms(text: string): readonly string[] {
  const bytes = Buffer.from(text);
  return [0, 1, 2].flatMap(shift => {
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64');
    const first = Math.ceil((shift * 8) / 6);
    const last = Math.floor(((shift + bytes.length) * 8) / 6);
    const form = encoded.slice(first, last);
    return [form, form.replaceAll('+', '-').replaceAll('/', '_')];
  });
}
