/**
 * A title as a part of an address.
 * @param {string} title
 */
export const slug = title => title.toLowerCase().replace(' ', '-');
