/** A title as a part of an address. */
export const slug = title => title.toLowerCase().replace(' ', '-');
